# make demo      install into .venv and run the example of the README
# make test      install into .venv with the test tools and run all tests
# make lint      style, types, import rules, workflows
# make docs      the site in build/site; warnings and links that lead nowhere are errors
# make sanitize  the kernels under the sanitizers (after make test)
# make dist      the source archive and a wheel in dist/, checked and tried in an environment of its own
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
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/wish.yml
	$(BIN)/zizmor --offline --quiet --pedantic .github
	for system in linux macos windows; do $(BIN)/cibuildwheel --platform $$system --print-build-identifiers > /dev/null || exit; done

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/site
	$(BIN)/python .ci/site.py build/site

sanitize: $(VENV)/.test
	.ci/sanitize

dist: $(VENV)/.made
	rm -rf dist build/wheel
	$(BIN)/pip install --quiet build twine check-wheel-contents abi3audit
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	case $$(ls dist/*.whl) in *abi3*) $(BIN)/abi3audit --strict dist/*.whl;; esac
	$(BIN)/python -m venv build/wheel
	build/wheel/bin/pip install --quiet dist/*.whl
	cd build/wheel && bin/python ../../.ci/smoke.py

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

# The tools alone, without building the package again.
extra = $(BIN)/python -c 'import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$(1)"], sep="\0", end="")' \
	| xargs -0 $(BIN)/pip install --quiet

$(VENV)/.docs: $(VENV)/.package pyproject.toml
	$(call extra,docs)
	touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml
	$(call extra,dev)
	touch $@
