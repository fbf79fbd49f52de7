# Two commands set everything up on a machine with Python 3.11+ and make: `make demo` and `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help

.PHONY: help
help:  ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The environment follows pyproject.toml; kernels are compiled once here, not while somebody waits for a result.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

.PHONY: kernels
kernels: $(VENV)/ready
	@echo "compiling kernels (some minutes, once for a version of the sources)"
	@$(BIN)/anabranch compile

.PHONY: demo
demo: $(VENV)/ready  ## Run the main job on real input
	@echo "compiling three kernels (half a minute, once for a version of the sources)"
	@$(BIN)/anabranch compile codec exact tree-exact
	@$(BIN)/anabranch demo

.PHONY: check
check: $(VENV)/ready  ## Lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: test
test: $(VENV)/ready  ## Check and run all tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync check kernels
	$(BIN)/pytest -n auto --dist loadgroup -m 'not processors' --durations 10

.PHONY: thorough
thorough: check kernels  ## Run all tests, and of each all variants (before a release)
	THOROUGH=1 $(BIN)/pytest -n auto --dist loadgroup -m 'not processors' --durations 10

.PHONY: fast
fast: check kernels  ## Check and run the tests that are quick: no brokers, a tenth of the random examples, three variants of a test
	TESTS=few VARIANTS=3 $(BIN)/pytest -n auto --dist worksteal -m 'not broker and not processors and not slow' --durations 10

.PHONY: processors
processors: $(VENV)/ready  ## Golden recordings with kernels for other processors (some minutes)
	$(BIN)/pytest -m processors --durations 3

# The demo, the quick tests and a wheel, each in an environment of its own.
PYTHONS ?= 3.12 3.13 3.14

.PHONY: pythons
pythons:  ## Check with each newer Python that is found, and say which are not
	@for version in $(PYTHONS); do \
		found=; \
		for python in python$$version $$HOME/.pyenv/versions/$$version*/bin/python $$HOME/.local/share/uv/python/*-$$version*/bin/python; do \
			if [ -z "$$found" ] && "$$python" -c '' 2>/dev/null; then found=$$python; fi; \
		done; \
		if [ -z "$$found" ]; then echo "Python $$version: not found"; continue; fi; \
		echo "Python $$version: $$found"; \
		$(MAKE) PYTHON="$$found" VENV=".venv-$$version" demo fast wheel || exit 1; \
	done

.PHONY: wheel
wheel: $(VENV)/ready  ## Build a wheel for this platform and Python, with all kernels inside
	@rm -rf algorithms/kernels
	$(BIN)/anabranch compile --into algorithms/kernels
	$(BIN)/pytest tests/algorithms/core/test_machine_code.py
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@rm -rf algorithms/kernels
	@ls -l dist

.PHONY: format
format: $(VENV)/ready  ## Format the sources
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
