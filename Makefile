# Gnomon. `make demo` and `make test` need only Python >= 3.11 and make: each sets up .venv for itself the first time.
.DEFAULT_GOAL := help
.PHONY: help order demo test test-slow check bench docs lint types web web-check clean
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
# Test processes at once. Each computes on one thread (tests/conftest.py), so that two do not fight over two cores.
JOBS ?= 2
# worksteal: neighbours run in one process, and share what they import and build.
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations=10
# Rewriting the asserts of all tests takes 5 s in each process: what python compiled is kept, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo 'make order      swap two words and see what attention notices, with and without position'
	@echo 'make demo       train the same small model under each position encoding and compare them'
	@echo 'make test       the fast tests: of many similar cases a sample'
	@echo 'make test-slow  the other cases, and what takes long: trainings, the built wheel, older processors'
	@echo 'make check      ruff, mypy and the fast tests: run it before a commit'
	@echo 'make bench      how fast it is beside other libraries, into docs/speed.md'
	@echo 'make web        build the page of the explorer anew (needs Node 20); web-check tests it'
	@echo 'make docs       the documentation site, into docs/_build/index.html'
	@echo 'make clean      remove .venv, .venv-bench and what tools left behind (never runs/)'
	@echo 'Python: the first of $(PYTHONS) that is >= 3.11, or PYTHON=/path/to/python'

order: $(VENV)/.core
	$(BIN)/gnomon order $(ARGS)

demo: $(VENV)/.core
	$(BIN)/gnomon demo $(ARGS)

test: $(VENV)/.dev
	$(PYTEST) $(ARGS)

test-slow: $(VENV)/.dev
	$(PYTEST) -m slow $(ARGS)

check: lint types test

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

# The libraries to compare with have an environment of their own: one process races them all.
bench: $(BENCH)/.peers
	$(BENCH)/bin/python benchmarks/all.py $(ARGS)

$(BENCH)/.peers: $(VENV)/.core
	$(BIN)/python -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --disable-pip-version-check --constraint constraints.txt \
	    --build-constraint constraints.txt --editable '.[tasks]' --group bench
	@touch $@

# The page of the explorer: its source is explorer/, what is built of it is committed, so that only who changes it needs Node.
web: explorer/node_modules/.package-lock.json $(VENV)/.core
	$(BIN)/python explorer/golden.py
	cd explorer && npm run build

web-check: explorer/node_modules/.package-lock.json
	cd explorer && npm run check && npm test
	cd explorer && npm run build -- --outDir built --emptyOutDir --logLevel warn
	diff -r explorer/built src/gnomon/explorer/static && rm -r explorer/built

explorer/node_modules/.package-lock.json: explorer/package-lock.json
	cd explorer && npm ci && touch node_modules/.package-lock.json

# A warning is an error: a link that leads nowhere, a name that is not there.
docs: $(VENV)/.dev
	$(PIP) --group docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build
	@echo 'open docs/_build/index.html'

clean:
	rm -rf docs/_build docs/reference explorer/node_modules explorer/built $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# A stamp is written only when all before it succeeded. An installation that was killed leaves .unfinished behind (with
# the process id of its make), and the next make begins again from nothing rather than trust what is there.
PYTHONS := $(or $(PYTHON),python3.11 python3.12 python3.13 python3.14 python3 python)
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt

$(VENV)/.core: pyproject.toml constraints.txt
	@if [ -e $(VENV)/.unfinished ]; then \
	    if kill -0 "$$(cat $(VENV)/.unfinished)" 2>/dev/null; then \
	        echo "Another make (process $$(cat $(VENV)/.unfinished)) is installing into $(VENV): wait for it (or, if there is none, remove $(VENV))." >&2; exit 1; \
	    fi; \
	    echo 'An earlier installation did not finish: starting $(VENV) anew.'; rm -rf $(VENV); \
	fi
	@for python in $(PYTHONS); do \
	    if $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "Setting up $(VENV) with $$python. The first time this downloads PyTorch, which can take minutes."; \
	        mkdir -p $(VENV) && echo $$PPID > $(VENV)/.unfinished && exec $$python -m venv $(VENV); \
	    fi; \
	done; \
	echo 'Gnomon needs Python >= 3.11 with its venv and ensurepip modules (Debian and Ubuntu: the package python3-venv).' >&2; \
	echo 'None of these is one: $(PYTHONS). Install one, or name it: make PYTHON=/path/to/python ...' >&2; \
	exit 1
	$(PIP) --upgrade pip
	$(PIP) --build-constraint constraints.txt --editable '.[tasks,eval]'
	@mv $(VENV)/.unfinished $@ && touch $@

$(VENV)/.dev: $(VENV)/.core
	@rm $(VENV)/.core && echo $$PPID > $(VENV)/.unfinished
	$(PIP) --group dev
	@mv $(VENV)/.unfinished $(VENV)/.core && touch $(VENV)/.core $@
