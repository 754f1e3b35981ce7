# `make demo` shows everything; `make test` checks everything. Both make their own environment in $(VENV).
VENV ?= .venv
PYTHON ?= python3
PIP = $(VENV)/bin/python -m pip --disable-pip-version-check -q
# What is tested by default. What runs in real time (`alone`) has the machine to itself: a robot waits for nobody.
DEFAULT = not interop and not hardware and not benchmark
# setuptools makes an editable install live for edits and new modules; only these two files change what is installed.
INSTALLED_BY = pyproject.toml constraints.txt

.PHONY: demo test lint docs clean

demo: $(VENV)/.installed
	$(VENV)/bin/labctl demo --dir labctl-demo

test: $(VENV)/.installed-test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/python -m pytest -q -n 2 --dist loadfile -m "not alone and $(DEFAULT)"
	$(VENV)/bin/python -m pytest -q -rR -m "alone and $(DEFAULT)"

# The type checker cannot follow mapped folders, so it reads a copy laid out as installed.
lint: $(VENV)/.installed-test
	$(PIP) install -c constraints.txt -e '.[lint]'
	$(VENV)/bin/ruff format --check .
	rm -rf build/types && mkdir -p build/types && cp -r labctl build/types/
	cp -r drivers analysis ui fixtures protocols build/types/labctl/
	cp pyproject.toml build/types/ && cd build/types && $(abspath $(VENV))/bin/pyright --pythonpath $(abspath $(VENV))/bin/python labctl

docs: $(VENV)/.installed-test
	$(VENV)/bin/python -P tests/unit/test_help.py > docs/cli.md
	$(VENV)/bin/python -P tests/unit/test_planning_page.py

clean:
	rm -rf build dist *.egg-info labctl-demo

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(INSTALLED_BY) | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/.installed-test: $(INSTALLED_BY) | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[test]'
	touch $@ $(VENV)/.installed
