# evalake: `make run` shows what it does, `make test` that it works. Needs Python >= 3.11, git and make.
PYTHON ?= python3
BIN := .venv/bin
# The environment has what runs evalake; the second stamp says that it also has what tests and checks it.
STAMP := .venv/.set-up
DEV_STAMP := .venv/.set-up-dev
BUILD := build
# What is installed; compiled at set-up, or each command would compile it again where bytecode is not written.
ROOMS := contracts evalake flows storage tasks
EVM := tests/unit/suites/solidity_audit/evm

.PHONY: run setup test test-fast line-coverage lint docs bench chaos deploy lock sbom licences audit clean

# All three use one server, which is ended where it was not there before.
run: setup
	@if test -z "$$PREFECT_API_URL" && ! $(BIN)/evalake status > /dev/null 2>&1; then \
		trap '$(BIN)/evalake down' EXIT; $(BIN)/evalake up --no-workers || exit; \
	fi; \
	for suite in solidity_audit session_review command_guard; do $(BIN)/evalake run $$suite || exit; done

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	$(install)
	touch $(STAMP)

$(DEV_STAMP): requirements-dev.lock pyproject.toml
	$(install)
	touch $(STAMP) $(DEV_STAMP)

# A set-up that was cut off is begun anew. Every file is checked against the lock's hashes, and the lock is whole, so
# that nothing has to be resolved; evalake itself is installed without looking at any index.
define install
@echo 'Setting up .venv from $<; this takes a minute or two …'
sh deploy/system_packages.sh setup $(PYTHON)
$(PYTHON) -c 'import sys; sys.exit("evalake needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
test -e $(STAMP) || $(PYTHON) -m venv --clear .venv
rm -f $(STAMP) $(DEV_STAMP)
$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes --requirement $<
$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --no-build-isolation --editable .
$(BIN)/python -m pip check
$(BIN)/python -m compileall -q -j 0 -x '[/]tests?[/]' $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') > /dev/null || true
$(BIN)/python -m compileall -q -j 0 $(ROOMS)
# The first run finds a Prefect database that is migrated already.
$(BIN)/python -m evalake.server.local.server
endef

# Tests whose programs the machine lacks are skipped, with the reason; in CI they fail. Three processes share the files, since
# end-to-end tests mostly wait. A part, `make test PYTEST='tests/unit/metrics -x'`, runs in one. Slipcover notes which lines
# run; `make line-coverage` tells. Where a process crashes, the others end their files, and the rest does not run.
SHARED := --numprocesses 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0
test: $(DEV_STAMP)
	@sh deploy/system_packages.sh test || true
	@! command -v npm > /dev/null || $(MAKE) --no-print-directory $(EVM)/node_modules/.package-lock.json
ifdef PYTEST
	$(BIN)/python -m pytest $(PYTEST)
else
	@mkdir -p $(BUILD)
	$(BIN)/python -u -m slipcover --immediate -m pytest $(SHARED)
endif

# Of what the last `make test` ran: the share of lines by room, and 1 where it falls short of tests/line_coverage.py.
line-coverage: $(DEV_STAMP)
	$(BIN)/python -m tests.line_coverage $(BUILD)/line_coverage.json

# What needs no server and is quick, for every save: in under three minutes on two cores.
FAST := tests/unit
test-fast: $(DEV_STAMP)
	$(BIN)/python -m pytest --quiet -m 'not e2e and not slow' $(SHARED) $(FAST)

# The Solidity compiler and the EVM with which tests carry out the attacks on the starter contracts.
$(EVM)/node_modules/.package-lock.json: $(EVM)/package-lock.json
	npm ci --prefix $(EVM) --ignore-scripts --no-audit --no-fund
	touch $@

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site of docs/, in build/docs/index.html. Warnings are errors; nothing asks the network.
docs: $(DEV_STAMP)
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs $(BUILD)/docs

bench: $(DEV_STAMP)
	$(BIN)/python -m benchmarks

# Injects faults for some twenty minutes, and writes what held into docs/reliability.md; `make chaos SEED=2` draws others.
SEED ?= 1
chaos: $(DEV_STAMP)
	$(BIN)/python -m chaos --seed $(SEED)

# To the Prefect server that PREFECT_API_URL names; docs/operations.md has the way from nothing to a scheduled run.
deploy: setup
	$(BIN)/python deploy/deploy.py

# Renew the locks from the bounds in pyproject.toml; `make lock UPGRADE=--upgrade` also takes newer versions. Where
# rfc3987-syntax is installed, every process that imports Prefect compiles a grammar for a second; nothing needs it.
COMPILE = $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-header $(UPGRADE) --group build --extra dask --extra telemetry
lock: $(DEV_STAMP)
	$(COMPILE) --output-file requirements.lock
	$(COMPILE) --extra dev --constraint requirements.lock --no-emit-package rfc3987-syntax --no-emit-package lark \
		--output-file requirements-dev.lock

# What an installation consists of, as CycloneDX, and under which licences it stands.
sbom: $(DEV_STAMP)
	mkdir -p $(BUILD)
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file $(BUILD)/sbom.cdx.json requirements.lock

licences: $(DEV_STAMP)
	mkdir -p $(BUILD)
	$(BIN)/pip-licenses --from mixed --format csv --with-urls --output-file $(BUILD)/licences.csv \
		--packages $$(sed -n 's/^\([a-z0-9-]*\)==.*/\1/p' requirements.lock)

# Asks the network for known vulnerabilities of what is pinned; ends with 3 where it cannot ask.
audit: $(DEV_STAMP)
	$(BIN)/python deploy/audit.py

clean:
	rm -rf .venv $(EVM)/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
