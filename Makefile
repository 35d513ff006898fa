# `make` alone lists the targets. Each makes .venv and installs what it needs when that is missing.

# The environment that is there, or the oldest Python that will do; PYTHON= of another version makes .venv new.
PYTHON ?= $(shell for p in .venv/bin/python python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PYTHON_VERSION := $(shell "$(PYTHON)" -c 'import sys; v = sys.version_info[:2]; v < (3, 11) or print("%d.%d" % v)' 2>/dev/null)
PORT ?= 8000
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Installed, marked by an empty file: what the service needs, and what its developers need.
RUNTIME := .venv/.runtime-$(PYTHON_VERSION)
DEV := .venv/.dev-$(PYTHON_VERSION)

.DEFAULT_GOAL := help
.PHONY: help run test check quick lint types pytest notebooks notebooks-update lab smoke fuzz deployed mutants bench soak browser chromium nginx wordpress clients docs fmt openapi reference clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' Makefile

run: $(RUNTIME) ## run the whole service with the demo world on PORT=8000 until Ctrl-C
	@$(BIN)/profilesvc demo --port $(PORT)

# The pages run beside mypy, which uses one core only. Then the tests have the machine to themselves, because some take times.
test: $(DEV) ## prove the project: lint, types, every test on SQLite and PostgreSQL, every notebook
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target lint types notebooks
	@$(MAKE) --no-print-directory pytest

# Files stay together, because the tests of a module share its processes; the slowest files come first (tests/conftest.py).
PARALLEL := --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

# All at once, because mypy uses one core only.
check: $(DEV) ## check a change in a minute or so: lint, types, unit tests, the API tests on SQLite
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target lint types quick

quick: $(DEV)
	$(BIN)/pytest -q $(PARALLEL) -m 'not postgres and not long' tests/unit tests/api tests/test_*.py

lint: $(DEV) ## check the style of the code and of its English
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell README.md SECURITY.md CHANGELOG.md docs deploy src
	$(BIN)/pytest -q -p no:randomly tests/test_english.py

types: $(DEV) ## check the types
	$(BIN)/mypy

pytest: $(DEV) ## run the tests alone
	$(BIN)/pytest -q $(PARALLEL)

# The cells of a page run in order, because one process runs the whole file; notebooks/conftest.py does the rest.
notebooks: $(DEV) ## prove every page of notebooks/: run it and compare each output
	$(BIN)/pytest -q -p no:randomly $(PARALLEL) --nbval notebooks --nbval-cell-timeout=60

notebooks-update: $(DEV) ## run every page of notebooks/ and store what it shows
	$(BIN)/ruff format notebooks
	$(BIN)/python -m profilesvc.lab.notebooks update

lab: $(DEV) ## JupyterLab on notebooks/
	@$(BIN)/profilesvc lab

# Exported, because a token on a command line can be seen by everyone on the machine.
smoke: export PROFILESVC_LAB__TARGET = $(BASE_URL)
smoke: export PROFILESVC_LAB__USER_TOKEN = $(USER_TOKEN)
smoke: export PROFILESVC_LAB__LOCATION = $(LOCATION)
smoke: export PROFILESVC_LAB__WRITE = $(or $(SMOKE_WRITE),0)
smoke: $(DEV) ## try the pages on a deployed service: BASE_URL=… USER_TOKEN=… LOCATION=… SMOKE_WRITE=1 PAGES=…
	@$(BIN)/python -m profilesvc.lab.notebooks smoke $(PAGES)

# Hours: what `make test` tries a few times is tried thousands of times, and what is timed is timed.
fuzz: $(DEV) ## the long runs: token mutation, schemathesis, races, crashes, timing
	PROFILESVC_FUZZ=1 $(BIN)/pytest -q -m 'fuzz or long' $(PARALLEL)

# One start of the processes serves all tests, so they run in one row: about half an hour.
WORKERS ?= 4
deployed: $(DEV) ## the tests of the API on WORKERS=4 processes on PostgreSQL behind one port
	PROFILESVC_DEPLOYED=$(WORKERS) $(BIN)/pytest -q -rs tests/api tests/identity tests/dashboard

mutants: $(DEV) ## change the code that guards tenants place by place, and see whether the tests notice
	$(BIN)/python tests/mutation/mutants.py

# wrk comes by apt where that is possible; without it a generator in Python makes the load.
bench: $(DEV) ## measure the service beside its peers in one run, write docs/performance.md
	@$(PIP) --group bench
	@command -v wrk >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends wrk; } || \
		echo "wrk cannot be installed here: the load is made by Python" >&2
	$(BIN)/python -m benchmarks

soak: $(DEV) ## an hour of mixed load on MINUTES=60 DATABASE=sqlite, and whether memory stays what it was after a minute
	@$(PIP) --group bench
	$(BIN)/python -m benchmarks.soak --minutes $(or $(MINUTES),60) --database $(or $(DATABASE),sqlite)

# Chromium comes by apt where that is possible; what a person would see lies in build/browser afterwards.
browser: $(DEV) ## the pages and JupyterLab in a real Chromium
	@$(PIP) --group browser
	@$(MAKE) --no-print-directory chromium
	$(BIN)/pytest -m browser tests/browser $(BROWSER)

chromium:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
		apt-get update -qq && \
		apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core fonts-noto-color-emoji

# nginx comes by apt where that is possible; without it its tests are skipped.
nginx:
	@command -v nginx >/dev/null || test -x /usr/sbin/nginx || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends nginx-light; }

# WordPress, PHP and MariaDB come by apt where that is possible; no server of theirs is started.
WORDPRESS := wordpress php-cli php-mysql mariadb-server-core mariadb-client-core php-codesniffer
wordpress: $(DEV) ## the plugin of examples/ in a real WordPress
	@{ test -d /usr/share/wordpress && command -v phpcs >/dev/null && test -x /usr/sbin/mariadbd; } || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $(WORDPRESS); } || \
		echo "WordPress cannot be installed here: its tests are skipped" >&2
	$(BIN)/pytest -q -rs -m wordpress tests/wordpress

# npm comes by apt where that is possible; without a registry it would retry for many minutes.
NPM := { command -v npm >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends npm; }; } && \
	timeout 300 npm install --silent --no-save --no-audit --no-fund --fetch-retries=1 --prefix

# Generators, linters and OAuth libraries, from PyPI, npm and Debian; the tests of what cannot be installed are skipped.
CLIENTS := build/clients
clients: $(DEV) ## other people's generators, linters and OAuth libraries on the OpenAPI document and a running service
	@mkdir -p $(CLIENTS)
	@test -x $(CLIENTS)/venv/bin/python || $(BIN)/python -m venv $(CLIENTS)/venv
	@$(CLIENTS)/venv/bin/pip install --quiet --disable-pip-version-check --requirement tests/clients/python.txt || \
		echo "PyPI cannot be reached" >&2
	@test -d /usr/share/php/GuzzleHttp || { apt-get update -qq && \
		apt-get install -y -qq --no-install-recommends php-cli php-curl php-mbstring php-xml php-guzzlehttp-guzzle; } || \
		echo "Guzzle cannot be installed here" >&2
	@$(NPM) $(CLIENTS) $$(cat tests/clients/npm.txt) || echo "npm packages cannot be installed here" >&2
	$(BIN)/pytest -q -rs -m clients tests/clients

MERMAID := mermaid@11.17.2
docs: $(DEV) ## the static site of notebooks, guides and references, in build/site
	@$(PIP) --group docs
	@mkdir -p build/docs/static
	@{ $(NPM) build/docs $(MERMAID) && cp build/docs/node_modules/mermaid/dist/mermaid.min.js build/docs/static; } || \
		echo "Mermaid cannot be installed here: the diagrams of the site stay text" >&2
	$(BIN)/sphinx-build -q -W -c docs . build/site

fmt: $(DEV) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The examples are recorded from the running service, and the document contains them.
openapi: $(DEV) ## record the examples of the API and write openapi.json
	$(BIN)/python -m profilesvc.lab.examples
	$(BIN)/profilesvc openapi -o openapi.json

reference: $(DEV) ## write what comes from the code: tables and examples of docs/, the texts of the plugin
	cd tests && for each in page_tables page_regions translations; do ../$(BIN)/python -m support.$$each || exit 1; done

clean: ## remove .venv, caches and builds; var/ stays
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNTIME): pyproject.toml constraints.txt
	@test -n "$(PYTHON_VERSION)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(BIN)/python -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "$(PYTHON_VERSION)")' 2>/dev/null || \
		"$(PYTHON)" -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(PIP) --editable .
	@touch $@

$(DEV): $(RUNTIME)
	$(PIP) --group dev
	@touch $@
