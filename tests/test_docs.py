"""The documentation agrees with the code: the table of measures, the links, the examples."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import metrimax
from metrimax import display, measure, structured

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
NAMES = {
    "metrimax": [name for name in metrimax.__all__ if name != "__version__"],
    "metrimax.measure": [name for name in measure.__all__ if name != "REGISTRY" and name not in metrimax.__all__],
    "metrimax.structured": structured.__all__,
    "metrimax.display": display.__all__,
    "metrimax.estimates.resampling": ["estimator_table"],
    "metrimax.designs": ["as_design"],
    "metrimax.io.data": ["load_data"],
    "metrimax.io.models": ["LinearModel", "load_model", "save_model"],
    "metrimax.io.writing": ["ShardWriter"],
    "metrimax.io.checkpoints": ["Checkpoint"],
    "metrimax.compat.quapy": ["SVMperf", "install"],
}


def measure_table() -> str:
    """The table of measures in Markdown, as it stands between the marks in README.md."""
    rows = [(f"`{name}`", line.replace("|", r"\|")) for name, line in metrimax.measures().items()]
    return "\n".join(["| name | measure |", "|---|---|", *(f"| {name} | {line} |" for name, line in rows)])


def name_list() -> str:
    """Modules, their public names with parameters and first lines, as they stand between the marks in docs/api.md."""
    lines = []
    for module, names in NAMES.items():
        lines += ["", f"### `{module}`", ""]
        for name in names:
            thing = getattr(import_module(module), name)
            lines.append(f"* `{name}{parameters(thing)}`: {inspect.getdoc(thing).splitlines()[0]}")
    return "\n".join(lines).strip()


def parameters(thing: object) -> str:
    """A signature without types; an array as a default is left out."""

    def bare(one: inspect.Parameter) -> inspect.Parameter:
        default = ... if isinstance(one.default, np.ndarray) else one.default
        return one.replace(annotation=inspect.Parameter.empty, default=default)

    signature = inspect.signature(thing)
    bared = [bare(one) for one in signature.parameters.values()]
    return str(signature.replace(parameters=bared, return_annotation=signature.empty)).replace("Ellipsis", "...")


def anchors(page: Path) -> set[str]:
    """The names that headings of a page get on GitHub."""
    headings = re.findall(r"^#+ +(.*)$", _prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def _prose(page: Path) -> str:
    """The text of a page without its blocks of code."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def calls() -> list[tuple[str, str, tuple[str, ...]]]:
    """The names in the diagrams of docs/architecture.md, each with its file and those of the lines above it."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    found, above = [], []
    for line in "".join(re.findall(r"<!-- calls -->\n(.*?)<!-- /calls -->", page, flags=re.DOTALL)).splitlines():
        depth, (names, file) = len(line) - len(line.lstrip()), re.split(r"  +", line.strip())
        above = [(outer, caller) for outer, caller in above if outer < depth]
        found += [(name, file, tuple(caller for _, caller in above)) for name in names.split(", ")]
        above.append((depth, file))
    return list(dict.fromkeys(found))


def code_of(file: str) -> str:
    return (ROOT / "src/metrimax" / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "file"), list(dict.fromkeys(call[:2] for call in calls())), ids=lambda part: part)
def test_the_architecture_names_what_there_is(name, file):
    for part in name.split("."):
        definition = rf"\b(def|class) {part}\b" if file.endswith(".py") else rf"\b{part}\b"
        assert re.search(definition, code_of(file)), f"docs/architecture.md: no {part} in {file}"


@pytest.mark.parametrize(("name", "callers"), [(name, above) for name, file, above in calls() if file[0] != "_"])
def test_the_architecture_says_who_calls(name, callers):
    """One of the files above it names it, other than by its definition; of ``Class.method`` one of the two."""
    wanted = "|".join(name.split("."))
    used = (re.sub(rf"\b(def|class) ({wanted})\b", "", code_of(file)) for file in callers)
    assert not callers or any(re.search(rf"\b({wanted})\b", code) for code in used), f"{name} not in {callers}"


def test_contributing_names_tests_that_there_are():
    listed = re.findall(r"`(test_[\w*]+\.py)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert [name for name in listed if not list(ROOT.glob(f"tests/{name}"))] == []


def test_readme_lists_the_measures():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.search(r"<!-- measures -->\n(.*?)\n?<!-- /measures -->", readme, flags=re.DOTALL)
    assert listed is not None
    assert listed[1].strip() == measure_table(), f"put this between the marks:\n{measure_table()}"


def test_readme_says_what_was_measured():
    from experiments import headline
    from experiments.harness import Options

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    said = re.search(r"<!-- measured -->\n(.*?)<!-- /measured -->", readme, flags=re.DOTALL)
    assert said is not None
    wanted = headline.sentences(*headline.measured(Options(out=ROOT / "experiments/results", pages=ROOT)))
    assert said[1] == wanted, f"put this between the marks:\n{wanted}"


def test_the_reference_lists_the_public_names():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = re.search(r"<!-- names -->\n(.*?)\n?<!-- /names -->", page, flags=re.DOTALL)
    assert listed is not None
    assert listed[1].strip() == name_list(), f"put this between the marks:\n{name_list()}"


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


def test_readme_names_examples_that_exist():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"examples/(\w+\.py)", readme))
    assert named
    assert named <= {path.name for path in EXAMPLES}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_fit_into_the_gallery(example):
    """A title, underlined as reStructuredText has it, and a picture."""
    text = example.read_text(encoding="utf-8")
    title, line = ast.get_docstring(ast.parse(text)).splitlines()[:2]
    assert line == "=" * len(title)
    assert "plt.show()" in text


def test_docs_index_names_every_page():
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)#\s]+)", _prose(index))}
    missing = [str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md") if page.resolve() not in linked]
    assert missing == ["docs/README.md"]


def test_the_gallery_has_a_place_for_every_example():
    conf = ast.parse((ROOT / "docs" / "conf.py").read_text(encoding="utf-8"))
    names = next(
        node.value
        for node in conf.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "GALLERY"
    )
    assert sorted(eval(ast.unparse(names))) == [path.stem for path in EXAMPLES]
