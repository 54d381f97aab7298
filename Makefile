# make demo: parse a sentence, then parse and tag a few jointly. make test: everything the project checks.
# Both need Python 3.11 or newer and make, nothing else; they work inside this folder.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

.PHONY: demo test test-all wheel wheel-tested tests-ray lint types docs site tests tests-bounds tests-interpreted tests-torch fuzz format clean

demo: $(VENV)/demo.stamp
	$(BIN)/certus parse "Red flies some large jet"
	$(BIN)/python examples/joint_parsing.py

test: $(VENV)/test.stamp
	$(MAKE) --no-print-directory --jobs=$(WORKERS) --output-sync lint types docs
	$(MAKE) --no-print-directory tests
	$(MAKE) --no-print-directory tests-interpreted

# What make test does, then what is hopeless as plain Python with bounds checked, the site with its tutorials run, pages in
# a browser (skipped without Chromium), structures over tensors (skipped without torch), a Ray of two workers (skipped without Ray), the wheel
# with compiled kernels, and two minutes of fuzzing with a new seed.
test-all: test
	$(MAKE) --no-print-directory tests-bounds
	$(MAKE) --no-print-directory site
	$(PYTEST) tests -m browser
	$(MAKE) --no-print-directory tests-torch
	$(MAKE) --no-print-directory tests-ray
	$(MAKE) --no-print-directory wheel
	$(MAKE) --no-print-directory fuzz MINUTES=2

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.stamp
	$(BIN)/mypy

# The site into .cache/site; tutorials are shown without what they print and draw, which takes make site.
docs: $(VENV)/test.stamp
	$(BIN)/python docs/build.py

# The same, with the cells of the tutorials run by a Jupyter kernel and what they draw on the pages. That of torch needs torch.
site: $(VENV)/test.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint tests/torch/constraints.txt --editable '.[notebooks,torch]'
	$(BIN)/python docs/build.py --execute

# What imports torch is tested by tests-torch.
TORCH := --ignore=src/certus/torch --ignore=src/certus/models/network.py --ignore=src/certus/models/neural.py
tests: $(VENV)/test.stamp
	$(PYTEST) tests src/certus --doctest-modules --ignore=src/certus/kernels $(TORCH) -m "not browser and not torch and not ray and not wheel"

# Kernels again as plain Python, which checks the bounds of arrays; there numpy warns of hashes that wrap around and of
# what becomes of infinities, as it should be. Nothing is compiled, so any worker may run any test.
tests-interpreted: $(VENV)/test.stamp
	NUMBA_DISABLE_JIT=1 CERTUS_TESTS=quick $(PYTEST) --dist worksteal tests --require-every-kernel -W ignore::RuntimeWarning -m "not browser and not torch and not ray and not wheel"

# What is hopeless as plain Python, with bounds checked and less optimised, which compiles faster. Learners and models
# have small tests that are interpreted instead: what they call takes minutes to compile.
LEFT_OUT ?= --ignore=tests/learn --ignore=tests/models
tests-bounds: $(VENV)/test.stamp
	NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 CERTUS_TESTS=quick $(PYTEST) tests -m compiled $(LEFT_OUT)

# Random problems, batches, sums, saved results and files: make fuzz MINUTES=5 [TARGET=problems] [SEED=1]. Files that
# coverage leads to need the extra "fuzz" too: $(BIN)/python -m pip install -e '.[fuzz]'.
MINUTES ?= 5
fuzz: $(VENV)/test.stamp
	$(BIN)/python -m tests.fuzz $(if $(TARGET),"$(TARGET)") --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# Gradients and losses over tensors, with the version of torch that the constraints name.
tests-torch: $(VENV)/test.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint tests/torch/constraints.txt --editable '.[torch]' \
		|| echo "torch cannot be installed here: the tests of certus.torch are skipped, if there is none" >&2
	$(PYTEST) tests/torch tests/docs/test_snippets.py tests/docs/test_examples.py -m torch

# Files and problems on a Ray of two workers, of which one is killed.
tests-ray: $(VENV)/test.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[ray]' \
		|| echo "Ray cannot be installed here: its tests are skipped, if there is none" >&2
	$(BIN)/python -m pytest -q tests/engines -m ray

# A wheel that carries compiled kernels, in dist, and its tests in an environment of its own. What was compiled for it is
# kept in build/compiled-cache: the first time takes some minutes, the next ones only what changed.
wheel: $(VENV)/test.stamp
	$(BIN)/python -m certus.shipping build/compiled; case $$? in \
		0) $(MAKE) --no-print-directory wheel-tested;; \
		2) echo "no kernels are shipped for this machine: the wheel is left out" >&2;; \
		*) exit 1;; esac

wheel-tested: $(VENV)/test.stamp
	rm -f dist/certus-*-cp*.whl
	CERTUS_WHEEL=build/compiled $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(PYTHON) -m venv --clear build/wheel
	build/wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/certus-*-cp*.whl
	CERTUS_WHEEL_PYTHON=$(CURDIR)/build/wheel/bin/python $(BIN)/python -m pytest -q tests/packaging

format: $(VENV)/test.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .cache src/certus/kernels/__pycache__ .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "certus needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/test.stamp: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/demo.stamp
