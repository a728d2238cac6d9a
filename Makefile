# Everything below makes its own set-up: a virtual environment in .venv, with Python and make as the only needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-fast lint audit containers clean

demo: $(VENV)/.installed
	@$(BIN)/stream-cgzsl demo

test: lint
	$(BIN)/pytest --numprocesses 2 --dist loadfile --durations 30

# No broker, no browser, nothing that takes seconds: the heart of every room in under two minutes.
test-fast: lint
	$(BIN)/pytest --numprocesses 2 -m "not kafka and not slow"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

audit: $(VENV)/.installed-dev
	@$(BIN)/python .ci/audit.py

# The image built, and workers, demo and the compose file run in containers. Needs Docker or podman.
containers:
	@deploy/try/run.sh

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
