"""What must agree in a release: addresses, versions, links to pages, the metadata of the package."""

from __future__ import annotations

import importlib.metadata
import io
import re
import runpy
import tomllib
import urllib.error
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context

import metrimax
from metrimax import structured
from metrimax.estimators._links import SITE

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
URLS = PROJECT["project"]["urls"]
ESTIMATORS = [
    "CAPOClassifier",
    "CAPOClassifierCV",
    "MeasureEnsemble",
    "MeasureRanker",
    "MeasureRankerCV",
    "MeasureSVC",
    "MeasureSVCCV",
]
STRUCTURED = ["CFGParser", "SequenceTagger", "StructuredSVM", "SupervisedClustering"]


@pytest.mark.parametrize("name", ESTIMATORS + STRUCTURED)
def test_estimators_link_to_their_page(name):
    """docs/conf.py writes reference/MODULE.NAME.html for every name that docs/api.md lists."""
    module = metrimax if name in ESTIMATORS else structured
    model = getattr(module, name)([]) if name.startswith("CAPO") else getattr(module, name)()
    link = f"{SITE}/reference/{module.__name__}.{name}.html"
    assert model._get_doc_link() == link
    assert link in model._repr_html_()
    listed = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").split(f"### `{module.__name__}`\n")[1]
    assert f"* `{name}(" in listed.split("###")[0]


@pytest.mark.parametrize("rows", [1, 3])
def test_notebooks_show_the_certificate(rows):
    """Below scikit-learn's diagram, both ways that notebooks ask for it; of several labels the largest gap."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.5, np.zeros(60)]).astype(int)
    model = metrimax.MeasureSVC("f1", logistic=1)
    assert "Certificate" not in model._repr_html_()
    model.fit(X, Y[:, 0] if rows == 1 else Y)
    gaps, objectives, bounds = map(np.atleast_1d, (model.gap_, model.objective_, model.dual_bound_))
    worst = int(np.argmax(gaps))
    for drawn in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        _, line = drawn.split("<b>Certificate.</b>")
        assert f"Gap {gaps[worst]:.2g} in units of the measure" in line
        assert f"objective {objectives[worst]:.6g}, proven lower bound {bounds[worst]:.6g}." in line
        assert "the duality gap is within tol" in line
        assert ("3 labels (2 converged, 1 one class)" in line) == (rows == 3)
    with config_context(display="text"):
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_there_is_one_address():
    assert URLS["Documentation"].rstrip("/") == SITE
    assert URLS["Issues"].startswith(URLS["Source"])
    assert URLS["Changelog"].startswith(URLS["Source"])
    owner = URLS["Source"].removeprefix("https://github.com/")
    _, pictures, links = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]
    assert f"https://raw.githubusercontent.com/{owner}/main/" in pictures["replacement"]
    assert f"{URLS['Source']}/blob/main/" in links["replacement"]


def test_the_long_description_has_absolute_links():
    """As fancy-pypi-readme applies them; twine checks the built files (``make dist``)."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for change in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    assert targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    assert "\n    pip install metrimax\n" in text
    assert "make demo" not in text


def test_the_page_on_installation_names_every_extra():
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    rows = "".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))
    extras = set(PROJECT["project"]["optional-dependencies"]) - {"test", "dev", "docs"}
    assert set(re.findall(r"`(\w+)`", rows)) == extras


def test_the_site_links_to_the_projects_that_answer(monkeypatch):
    """Without a network the site has no links to others, and is built all the same."""
    inventory = b"# Sphinx inventory version 2\n"

    def answer(address, timeout):
        if "scipy" in address:
            raise urllib.error.URLError("no network")
        return io.BytesIO(b"<html>log in first</html>" if "python.org" in address else inventory)

    monkeypatch.setattr("urllib.request.urlopen", answer)
    mapping = runpy.run_path(str(ROOT / "docs" / "conf.py"))["intersphinx_mapping"]
    assert {name: address for name, (address, _) in mapping.items()} == {
        "numpy": "https://numpy.org/doc/stable/",
        "sklearn": "https://scikit-learn.org/stable/",
    }
    assert all(Path(copy).read_bytes() == inventory for _, copy in mapping.values())


def test_wheels_are_tried_on_every_python_that_is_promised():
    promised = [name.split(" :: ")[-1] for name in PROJECT["project"]["classifiers"] if "Python :: 3." in name]
    built = PROJECT["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{version.replace('.', '')}-*" for version in promised]


def test_there_is_one_version():
    version = metrimax.__version__
    assert importlib.metadata.version("metrimax") == version
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, flags=re.MULTILINE)[1] == version
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \[(.*?)\]", changelog, flags=re.MULTILINE)[1] == version


def test_the_recipe_asks_for_what_the_package_asks_for():
    """packaging/conda-forge/recipe.yaml repeats the version, what is needed, and the commands."""
    text = (ROOT / "packaging/conda-forge/recipe.yaml").read_text(encoding="utf-8")
    assert f'version: "{metrimax.__version__}"' in text
    needed = [name.replace(">=", " >=") for name in PROJECT["project"]["dependencies"]]
    assert re.findall(r"    - (.*)", text.split("  run:\n")[1].split("tests:")[0]) == ["python", *needed]
    for build in PROJECT["build-system"]["requires"]:
        assert f"- {build.replace('>=', ' >=')}\n" in text
    for name, place in PROJECT["project"]["scripts"].items():
        assert f"- {name} = {place}\n" in text
    assert URLS["Source"] in text
    assert URLS["Documentation"] in text
