# Each command sets up what it needs, on a machine that has Python >= 3.11 and nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test quick lint format clean

demo: $(VENV)/.installed  ## train on the embedded faces and write a report
	$(BIN)/permsplit run --preset smoke --clients 4

test: lint  ## lint, types and all tests
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

quick: $(VENV)/.installed-dev  ## the tests of the inner loop
	$(BIN)/python -m pytest -m "not slow" --numprocesses 2

lint: $(VENV)/.installed-dev  ## format, lint and types, as CI checks them
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev  ## mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove the environment and caches, not the runs
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "permsplit needs Python >= 3.11; name one: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/.installed
