PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: run test check format lock openapi clean

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Footnote needs Python 3.11 or newer; this one is %s. Try: make PYTHON=python3.11" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

run: $(STAMP)  ## Install and serve on http://127.0.0.1:8000
	$(BIN)/footnote serve

test: $(STAMP)  ## Install and pass the whole suite
	$(BIN)/pytest

check: $(STAMP)  ## Lint, types, import order
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

openapi: $(STAMP)
	$(BIN)/footnote openapi > openapi/openapi.json

lock:
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --quiet --no-header --output-file requirements.lock

clean:
	rm -rf $(VENV) dist build
