# `make` lists what there is to do. Everything installs into .venv; nothing else is touched.

PYTHON ?= python3
UV ?= uv

BIN := .venv/bin
READY := .venv/.spenn-ready

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo check format test bench lock clean distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with everything locked (once; again when the lock changes)
	@echo "Ready: .venv with $$($(BIN)/python --version)."

# A working .venv is kept, so `make test` after `make setup PYTHON=python3.12` stays on 3.12.
$(READY): pyproject.toml requirements.lock
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	    echo "spenn needs Python 3.11 or newer, and '$(PYTHON)' was not found. Try: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }; \
	  "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "spenn needs Python 3.11 or newer, and '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1). Try: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }; \
	  "$(PYTHON)" -m venv --clear .venv; \
	fi
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "spenn needs Python 3.11 or newer, and .venv holds $$($(BIN)/python --version). Try: make distclean setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

demo: $(READY) ## learn the oscillator with the quick preset; results in runs/demo
	$(BIN)/spenn run oscillator --preset quick --out runs/demo

check: $(READY) ## format, lint and types, without changing a file
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --warnings

format: $(READY) ## let ruff format, and fix what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: check ## check, then every test
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

bench: $(READY) ## run the benchmarks
	$(BIN)/python benchmarks/run.py

lock: ## resolve requirements.lock afresh (needs uv)
	@command -v "$(UV)" >/dev/null 2>&1 || { \
	  echo "make lock needs uv, and '$(UV)' was not found. Try: pip install uv" >&2; exit 1; }
	"$(UV)" pip compile --quiet --no-config --upgrade --universal --python-version 3.11 --generate-hashes \
	  --group dev --custom-compile-command "make lock" --output-file requirements.lock pyproject.toml

clean: ## remove caches and build outputs (runs/ and .venv stay)
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks examples -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## clean, and remove .venv too (runs/ stays)
	rm -rf .venv
