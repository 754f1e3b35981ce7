# `make demo` shows everything; `make test` checks what a change needs, `make test-all` everything that needs no other
# software. All make their own environment in $(VENV).
VENV ?= .venv
PYTHON ?= python3
PIP = $(VENV)/bin/python -m pip --disable-pip-version-check -q
# setuptools makes an editable install live for edits and new modules; only these two files change what is installed.
INSTALLED_BY = pyproject.toml constraints.txt

USUAL = not privileged and not interop and not hardware and not benchmark
# Two workers compute and step back for the two that run what goes by the clock (tests/harness/pools.py): by as much as
# leaves them a fourth of a core that a program beside them wants whole; a niceness of 15 left a thirtieth.
WORKERS ?= --tx 2*popen//nice=5 --tx 2*popen --dist loadscope
TESTED = $(VENV)/bin/python -m pytest -q -rsfE $(WORKERS)
# Of what is thorough most goes by the clock and waits: up to four of those at once, as far as the cores have time for
# them (tests/harness/turns.py).
REST = $(VENV)/bin/python -m pytest -q -rsfE --tx 2*popen $(WORKERS)
ONE = $(VENV)/bin/python -m pytest -q -rsfE --tx popen --dist loadscope
# The tests start some thousand processes: without bytecode on disk each of them would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-rest test-lowest test-root lint claims docs site release calibration gallery pictures fuzz limits bench-robots clean

demo: $(VENV)/.installed
	$(VENV)/bin/labctl demo --dir labctl-demo

test: $(VENV)/.installed-test
	$(TESTED) -m "not thorough and $(USUAL)"

test-all: test test-rest test-lowest lint

test-rest: $(VENV)/.installed-test
	$(REST) -m "thorough and not alone and $(USUAL)"
	$(ONE) -m "alone and $(USUAL)"

# The oldest versions that pyproject.toml admits, in an environment of their own. They have wheels for the oldest Python
# alone, so that is where they are tried.
LOWEST = build/lowest
test-lowest: $(VENV)/.installed-test
	@$(VENV)/bin/python -P tests/support/install/lowest_versions.py $(LOWEST)

# What root alone may do: raw sockets, realtime priorities.
test-root: $(VENV)/.installed-test
	$(VENV)/bin/python -m pytest -q -rsfE -m privileged

# The type checker cannot follow mapped folders, so it reads a copy laid out as installed.
lint: $(VENV)/.installed-test
	$(PIP) install -c constraints.txt -e '.[lint]'
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	rm -rf build/types && mkdir -p build/types && cp -r labctl build/types/
	cp -r drivers analysis ui fixtures protocols hw_configs build/types/labctl/
	cp pyproject.toml build/types/ && cd build/types && $(abspath $(VENV))/bin/pyright --pythonpath $(abspath $(VENV))/bin/python labctl

# What labctl promises, and the tests that hold it.
claims: $(VENV)/bin/python
	@$(VENV)/bin/python -P tests/claims.py

# A page that cannot be made stays as it was.
page = mkdir -p build && $(VENV)/bin/python -P $(1) > build/page.md && mv build/page.md $(2)

docs: $(VENV)/.installed-test
	$(call page,tests/unit/test_help.py,docs/cli.md)
	$(call page,tests/unit/test_drivers_page.py,docs/drivers.md)
	$(call page,tests/unit/config/test_configuration_page.py,docs/configuration.md)
	$(call page,tests/unit/core/test_event_bodies.py,docs/journal.md)
	$(call page,tests/unit/test_columns_page.py,docs/columns.md)
	$(call page,tests/unit/test_glossary_page.py,docs/glossary.md)
	$(call page,tests/unit/test_decisions_page.py,docs/decisions/README.md)
	$(VENV)/bin/python -P tests/unit/test_planning_page.py
	$(VENV)/bin/python -P tests/unit/messages/test_messages.py

# The documentation as a site, in build/site. A link that leads nowhere fails (not with -q, which hides it from mkdocs).
site: $(VENV)/.installed-test
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build --strict

# Refuses a changed tree and red tests; tags and builds, and publishes nothing. See CONTRIBUTING.md.
release: $(VENV)/.installed-test
	$(VENV)/bin/python -P .ci/release.py $(VERSION)

# The console's pictures in docs/pictures, from keys on a bench; needs Chromium. Look at them.
pictures: $(VENV)/.installed-test
	PYTHONPATH=tests $(VENV)/bin/python -P tests/support/screens/console_pictures.py

# Every picture of a report of episodes, in docs/gallery. Look at them.
gallery: $(VENV)/.installed-test
	PYTHONPATH=tests $(VENV)/bin/python -P tests/support/statistics/gallery.py

# The tables of docs/statistics-calibration.md: studies without figures, or STUDIES="looks …" again; RUNS= for fewer runs,
# WORKERS= studies at once, CLUSTER= the address of a Dask scheduler whose workers do them.
calibration: $(VENV)/.installed-test
	PYTHONPATH=tests nice $(VENV)/bin/python -P -m support.statistics.calibration_page $(if $(RUNS),--runs $(RUNS)) \
	$(if $(WORKERS),--workers $(WORKERS)) $(if $(CLUSTER),--cluster $(CLUSTER)) $(STUDIES)

# What is read from outside, spoilt, for as long as one likes: ARGS="--seconds 60 --inputs 1000 operations". What fails
# is kept and tried in every run of the tests.
fuzz: $(VENV)/.installed-test
	$(VENV)/bin/python -P tests/fuzz.py $(ARGS)

# The figures of docs/limits.md, some hours of CPU and 25 GB below WORK: every size and verb, then the page.
WORK ?= build/limits
limits: $(VENV)/.installed-test
	nice $(VENV)/bin/python -P tests/limits/measure.py $(WORK) $(ARGS)
	$(VENV)/bin/python -P tests/limits/page.py

# How soon and how closely the drivers follow, printed; needs a quiet machine and a reader.
bench-robots: $(VENV)/.installed-test
	$(VENV)/bin/python -m pytest -q -s -m benchmark tests/benchmarks/bench_teleop.py tests/benchmarks/bench_droid_law.py \
	tests/benchmarks/bench_null_space.py tests/benchmarks/bench_fci_loop.py

clean:
	rm -rf build dist *.egg-info labctl-demo

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "labctl needs Python 3.11 or newer, and \
	$(PYTHON) is $$($(PYTHON) --version 2>&1); name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(INSTALLED_BY) | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[lab]'
	touch $@

# Collected once: four workers that find no bytecode would each make all of it.
$(VENV)/.installed-test: $(INSTALLED_BY) | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[test]'
	@$(VENV)/bin/python -m pytest -q --collect-only > /dev/null || true
	touch $@ $(VENV)/.installed

include tests/interop/peers.mk
