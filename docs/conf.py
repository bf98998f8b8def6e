"""The site: ``make docs``. The pages are the Markdown files of this folder, the gallery is examples/."""

from __future__ import annotations

import re
import shutil
import urllib.request
from http.client import HTTPException
from importlib import import_module
from importlib.metadata import metadata
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import metrimax

DOCS = Path(__file__).parent
ROOT = DOCS.parent

project = "metrimax"
author = "The metrimax developers"
copyright = author
version = release = metrimax.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
# README.md is the list of pages for those who read the files; index.md is that of the site.
exclude_patterns = ["README.md", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5", "gallery/**/*.zip"]
default_role = "py:obj"
suppress_warnings = [
    "myst.header",  # pages that programs write have tables under small headings below their title
    "config.cache",  # functions in the settings of the gallery cannot be pickled
]

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4

# Formulas are set without a network: MathJax comes with a package, of which the site needs two parts.
mathjax_path = "mathjax/tex-chtml.js"
MATHJAX = ("tex-chtml.js", "output/chtml/fonts/woff-v2")

toc_object_entries_show_parents = "hide"  # the list beside a page is narrow
autodoc_typehints = "none"  # numpydoc's sections say what the types are for
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# What most people need comes first.
GALLERY = [
    *("pipeline_grid_search", "fraud_table", "multilabel", "precision_at_k", "recall_at_precision", "own_measure"),
    *("roc_ap_partial_auc", "ranking", "displays", "path_and_certificate", "xi_alpha_holdout", "capo_adaptation"),
    *("kernels", "quapy_quantification", "out_of_core", "dask_cluster", "structured_tagging", "structured_parsing"),
    *("structured_clustering", "structured_ordinal"),
]


def place_in_gallery(name: str) -> int:
    return GALLERY.index(Path(name).stem)


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": place_in_gallery,
    "abort_on_example_error": True,
    "show_memory": False,
    "reference_url": {"metrimax": None},  # names in the code lead to their pages, those of others by intersphinx
    "backreferences_dir": "gallery/used",
    "doc_module": ("metrimax",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "copyfile_regex": r".*\.rst",
}

html_theme = "pydata_sphinx_theme"
html_title = "metrimax"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "github_url": dict(url.split(", ") for url in metadata("metrimax").get_all("Project-URL"))["Source"],
    "footer_start": ["copyright"],
}


def reachable(pages: dict[str, str]) -> dict[str, tuple[str, str]]:
    """The inventories that answer: without a network the site is built without links to other projects.

    Each is fetched once, and Sphinx reads the copy: an address that answers once and then does not is no error.
    """
    found = {}
    folder = ROOT / "build" / "inventories"
    folder.mkdir(parents=True, exist_ok=True)
    for name, address in pages.items():
        try:
            with urllib.request.urlopen(address + "objects.inv", timeout=5) as answer:
                inventory = answer.read()
        except (OSError, HTTPException):
            inventory = b""
        if inventory.startswith(b"# Sphinx inventory version"):
            (folder / f"{name}.inv").write_bytes(inventory)
            found[name] = (address, str(folder / f"{name}.inv"))
        else:
            print(f"no links to {name}: {address} does not answer with an inventory")
    return found


intersphinx_mapping = reachable(
    {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "sklearn": "https://scikit-learn.org/stable/",
    }
)

# Files beside this folder that the site has a page of, or else nothing: such a link becomes its text.
BESIDE = {
    "README.md": "/index.md",
    "docs/README.md": "/index.md",
    "CHANGELOG.md": "/site/changelog.md",
    "CONTRIBUTING.md": "/site/contributing.md",
    "SECURITY.md": "/site/security.md",
}
COMMON = "get_metadata_routing, set_fit_request, set_score_request, set_partial_fit_request, get_params, set_params"
NAMES = re.compile(r"<!-- names -->\n(.*?)<!-- /names -->", re.DOTALL)


def public_names() -> list[tuple[str, str]]:
    """Modules and names that api.md lists; the tests hold it to the code."""
    listed = NAMES.search((DOCS / "api.md").read_text(encoding="utf-8"))
    assert listed is not None
    found, module = [], ""
    for line in listed[1].splitlines():
        if heading := re.match(r"### `([\w.]+)`", line):
            module = heading[1]
        elif item := re.match(r"\* `(\w+)", line):
            found.append((module, item[1]))
    return found


def write_reference(app: object) -> None:
    """A page for every public name."""
    folder = DOCS / "reference"
    folder.mkdir(exist_ok=True)
    for module, name in public_names():
        is_class = isinstance(getattr(import_module(module), name), type)
        lines = [name, "=" * len(name), "", f".. currentmodule:: {module}", ""]
        lines += [f".. {'autoclass' if is_class else 'autofunction'}:: {name}"]
        if is_class:  # what all of scikit-learn's estimators have is described there
            lines += ["   :members:", "   :inherited-members: BaseEstimator", f"   :exclude-members: {COMMON}"]
        lines += [
            "",
            f".. minigallery:: {module}.{name}",
            "   :add-heading: Examples in the gallery",
            "   :heading-level: -",
        ]
        page, text = folder / f"{module}.{name}.rst", "\n".join(lines) + "\n"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def rewrite(app: object, docname: str, source: list[str]) -> None:
    """Links of Markdown pages as the site has them; the names in api.md lead to their pages."""
    if docname == "api":
        source[0] = NAMES.sub(lambda listed: linked_names(listed[1]), source[0])
    if docname.startswith("results/"):  # the tables need the room of the list beside a page
        source[0] = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n" + source[0]
    if docname == "results/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"
    folder = (DOCS / docname).parent

    def moved(link: re.Match[str]) -> str:
        text, target = link[1], link[2]
        if target.startswith(("http:", "https:", "mailto:", "/")):
            return link[0]
        file = (folder / target).resolve()
        known = BESIDE.get(file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else "")
        if known:
            return f"[{text}]({known})"
        if file == ROOT / "examples/README.rst":
            return f"[{text}](/gallery/index.rst)"
        if file.is_relative_to(ROOT / "examples") and file.suffix == ".py":
            return f"[{text}](/gallery/{file.stem}.rst)"
        if file.is_dir() or not file.is_relative_to(DOCS):
            return text
        return link[0]

    source[0] = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)", moved, source[0])


def by_name(lines: list[str]) -> list[str]:
    """The items of each list in the order of an index, where capitals and small letters are alike."""
    ordered: list[str] = []
    for is_item, group in groupby(lines, lambda line: line.startswith("* ")):
        ordered += sorted(group, key=lambda line: line.casefold() if is_item else "")
    return ordered


def linked_names(text: str) -> str:
    """The list of names as links, and a list of their pages for each module."""
    lines, module, pages = [], "", []
    for line in by_name(text.splitlines()):
        if heading := re.match(r"### `([\w.]+)`", line):
            module = heading[1]
            pages += ["```", "", "```{toctree}", ":hidden:", f":caption: {module}", ""]
        if item := re.match(r"\* `(\w+).*?`: (.*)", line):
            pages.append(f"{item[1]} <reference/{module}.{item[1]}>")
            line = f"* [`{item[1]}`](/reference/{module}.{item[1]}.rst): {item[2]}"
        lines.append(line)
    return "\n".join([*lines, *pages[1:], "```", ""])


def escape_bars(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """A first line may have an absolute value, |a - b|, which would be a substitution."""
    if lines and name.startswith("metrimax"):
        lines[0] = lines[0].replace("|", r"\|")
    if name == "metrimax.compat.quapy.SVMperf.score":  # inherited, with links into scikit-learn's own pages
        lines[:] = ["Mean accuracy on (X, y)."]


def copy_mathjax(app: Any, exception: Exception | None) -> None:
    """The program that sets formulas and its fonts."""
    package = find_spec("sphinx-mathjax-offline")
    if app.builder.format != "html" or exception is not None or package is None or package.origin is None:
        return
    for name in MATHJAX:
        source, target = (
            Path(package.origin).parent / "static/mathjax" / name,
            Path(app.outdir) / "_static/mathjax" / name,
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target, dirs_exist_ok=True) if source.is_dir() else shutil.copy(source, target)


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", escape_bars, priority=100)  # before numpydoc
    app.connect("builder-inited", write_reference)
    app.connect("source-read", rewrite)
    app.connect("build-finished", copy_mathjax)
