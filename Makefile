# make demo      install into .venv and run the example of the README
# make test      install into .venv with the test tools and run all tests
# make lint      style, types and import rules
# make docs      the site in build/site; warnings and links that lead nowhere are errors
# make sanitize  the kernels under the sanitizers (after make test)
# make dist      the source archive and a wheel in dist/, checked
# make stub      regenerate the types of the compiled module after adding a kernel
# make clean     remove everything the above have made

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find src -type f -not -path '*/__pycache__/*')
CXX_SOURCES := $(wildcard src/metrimax/_core/*.hpp src/metrimax/_core/*.cpp tests/cpp/*.hpp tests/cpp/*.cpp)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test lint sanitize dist docs stub clean

demo: $(VENV)/.plot
	$(BIN)/metrimax demo --report $(VENV)/demo.html

test: $(VENV)/.test
	$(BIN)/python -m pytest -q -n auto

lint: $(VENV)/.package $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CXX_SOURCES)
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/site
	$(BIN)/python .ci/site.py build/site

sanitize: $(VENV)/.test
	.ci/sanitize

dist: $(VENV)/.made
	rm -rf dist
	$(BIN)/pip install --quiet build twine check-wheel-contents
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

stub: $(VENV)/.package $(VENV)/.dev
	$(BIN)/python -m nanobind.stubgen -q -m metrimax._kernels -o src/metrimax/_kernels.pyi

clean:
	rm -rf $(VENV) .cache build dist docs/gallery docs/reference docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamp files: what they depend on has not changed since the last installation.
$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "metrimax needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.package: $(VENV)/.made $(SOURCES)
	$(BIN)/pip install --quiet .
	touch $@

$(VENV)/.plot: $(VENV)/.made $(SOURCES)
	$(BIN)/pip install --quiet ".[plot]"
	touch $(VENV)/.package $@

$(VENV)/.test: $(VENV)/.made $(SOURCES)
	$(BIN)/pip install --quiet ".[test]"
	touch $(VENV)/.package $@

$(VENV)/.docs: $(VENV)/.made $(SOURCES)
	$(BIN)/pip install --quiet ".[docs]"
	touch $(VENV)/.package $@

# The tools alone, without building the package again.
$(VENV)/.dev: $(VENV)/.made pyproject.toml
	$(BIN)/python -c 'import tomllib; \
		print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["dev"])' \
		| xargs $(BIN)/pip install --quiet
	touch $@
