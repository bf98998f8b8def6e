"""The documentation agrees with the code: the table of measures, the links, the examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import metrimax

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def measure_table() -> str:
    """The table of measures in Markdown, as it stands between the marks in README.md."""
    rows = [(f"`{name}`", line.replace("|", r"\|")) for name, line in metrimax.measures().items()]
    return "\n".join(["| name | measure |", "|---|---|", *(f"| {name} | {line} |" for name, line in rows)])


def anchors(page: Path) -> set[str]:
    """The names that headings of a page get on GitHub."""
    headings = re.findall(r"^#+ +(.*)$", _prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def _prose(page: Path) -> str:
    """The text of a page without its blocks of code."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def test_readme_lists_the_measures():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.search(r"<!-- measures -->\n(.*?)\n?<!-- /measures -->", readme, flags=re.DOTALL)
    assert listed is not None
    assert listed[1].strip() == measure_table(), f"put this between the marks:\n{measure_table()}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.relative_to(ROOT)} links to {target}, which is not there"
        assert file.is_relative_to(ROOT), f"{page.relative_to(ROOT)} links out of the repository: {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.relative_to(ROOT)} links to {target}: no such heading"


def test_readme_names_every_example():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"examples/(\w+\.py)", readme))
    assert named == {path.name for path in (ROOT / "examples").glob("*.py")}


def test_docs_index_names_every_page():
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)#\s]+)", _prose(index))}
    missing = [str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md") if page.resolve() not in linked]
    assert missing == ["docs/README.md"]
