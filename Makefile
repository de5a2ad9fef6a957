# A thin cover: every recipe is a plain command that also works without make.
.DEFAULT_GOAL := help
.PHONY: help setup test prepare test-fast check demo bench prove load mutants

# Any Python 3 will do to start with: bootstrap.py finds one that is new enough.
PYTHON ?= python3
# For `make demo`, `prove`, `load` and `mutants`: queue or durable.
WORKER ?= queue
# Two processes. Which tests each runs: see tests/helpers/schedule.py.
PYTEST := -m pytest -n 2 --dist loadscope --no-loadscope-reorder --max-worker-restart 0 --durations 10
# For `make prove` and `load`: a generated project; without one, they generate a fresh one.
PROJECT ?=
JOBS ?= 500
SEED ?= 1
ifeq ($(OS),Windows_NT)
BIN := .venv/Scripts
else
BIN := .venv/bin
endif

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "  make %-10s %s\n", $$1, $$2 }'

setup: ## Make .venv with everything the tests import
	@$(PYTHON) tests/tools/bootstrap.py

test: setup ## Run every test; gets Python, SAM and containers ready by itself
	@$(MAKE) --no-print-directory -j 2 check prepare
	$(BIN)/python $(PYTEST)

prepare: setup
	@$(BIN)/python -m tests.tools.prepare

test-fast: setup ## Run the tests that need neither containers nor minutes
	$(BIN)/python $(PYTEST) -m "not container and not proof"

check: setup ## Check the kit's Python (style, format, types) and the English of its Markdown
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy
	$(BIN)/python -m tests.tools.prose

demo: setup ## Generate a project and watch one job go from 202 to completed
	@$(BIN)/python -m tests.tools.demo --worker $(WORKER)

bench: setup ## Measure the budgets; fails when one is exceeded
	@$(BIN)/python -m tests.tools.bench

prove: setup ## Run JOBS synthetic jobs under injected faults on PROJECT; check the promises
	@$(BIN)/python -m tests.tools.prove $(if $(PROJECT),"$(PROJECT)",--worker $(WORKER)) --jobs $(JOBS) --seed $(SEED)

load: setup ## Send 1,000 jobs in bursts to PROJECT; fail when one is lost
	@$(BIN)/python -m tests.tools.prove.load $(if $(PROJECT),"$(PROJECT)",--worker $(WORKER))

mutants: setup ## Change src/jobs/ in small ways; the tests must notice (most of an hour)
	@$(BIN)/python -m tests.tools.mutation --worker $(WORKER)
