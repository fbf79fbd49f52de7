# Two commands set everything up on a machine with Python 3.11+ and make: `make demo` and `make test`.

PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help

.PHONY: help
help:  ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The environment follows pyproject.toml; kernels are compiled once here, not while somebody waits for a result.
.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# What the tests use. A combination that is not among them is compiled when it is first used.
KERNELS := codec exact-entropy exact-gini exact-sqrt updent-entropy updgini-gini baseent-entropy basegini-gini \
	tree-periodic-entropy tree-periodic-gini tree-osm-gini tree-imac-gini tree-efdt-entropy tree-hat-entropy \
	tree-exact-entropy dynamic-entropy dynamic-gini regression-ebst regression-qo

.PHONY: kernels
kernels: .venv/ready
	@echo "compiling kernels (some minutes, once for a version of the sources)"
	@$(BIN)/anabranch compile $(KERNELS)

.PHONY: demo
demo: .venv/ready  ## Run the main job on real input
	@echo "compiling three kernels (half a minute, once for a version of the sources)"
	@$(BIN)/anabranch compile codec exact-entropy tree-exact-entropy
	@$(BIN)/anabranch demo

.PHONY: check
check: .venv/ready  ## Lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: test
# Tests with brokers go by themselves: on a busy machine a node misses the heartbeats that it is judged by.
test: check kernels  ## Check and run all tests
	$(BIN)/pytest -n auto --dist worksteal -m 'not broker'
	$(BIN)/pytest -m broker

.PHONY: wheel
wheel: .venv/ready  ## Build a wheel for this platform and Python, with all kernels inside
	@rm -rf algorithms/kernels
	$(BIN)/anabranch compile --into algorithms/kernels
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@rm -rf algorithms/kernels
	@ls -l dist

.PHONY: format
format: .venv/ready  ## Format the sources
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
