# evalake: `make run` shows what it does, `make test` that it works. Needs Python >= 3.11, git and make.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.set-up

.PHONY: run setup test lint bench deploy clean

run: setup
	$(BIN)/evalake run solidity_audit
	$(BIN)/evalake run session_review
	$(BIN)/evalake run command_guard

setup: $(STAMP)

# Pinned versions first, then evalake itself without looking at any index.
$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("evalake needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') > /dev/null || true
	touch $(STAMP)

test: setup
	$(BIN)/python -u -m pytest $(PYTEST)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	$(BIN)/python -m benchmarks

# To the Prefect server that PREFECT_API_URL names; docs/operations.md has the way from nothing to a scheduled run.
deploy: setup
	$(BIN)/python deploy/deploy.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
