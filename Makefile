# `make demo` shows everything; `make test` checks everything. Both make their own environment in $(VENV).
VENV ?= .venv
PYTHON ?= python3
PIP = $(VENV)/bin/python -m pip --disable-pip-version-check -q
# setuptools makes an editable install live for edits and new modules; only these two files change what is installed.
INSTALLED_BY = pyproject.toml constraints.txt

.PHONY: demo test lint docs clean

demo: $(VENV)/.installed
	$(VENV)/bin/labctl demo --dir labctl-demo

test: $(VENV)/.installed-test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/python -m pytest -q -n 2

lint: $(VENV)/.installed-test
	$(PIP) install -c constraints.txt -e '.[lint]'
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright

docs: $(VENV)/.installed-test
	$(VENV)/bin/python -P tests/unit/test_help.py > docs/cli.md

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
