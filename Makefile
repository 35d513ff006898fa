# `make` alone lists the targets. Each makes .venv and installs what it needs when that is missing.

# The Python of .venv, or the oldest one that is new enough. PYTHON= of another version creates .venv again.
PYTHON ?= $(shell for p in .venv/bin/python python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PYTHON_VERSION := $(shell "$(PYTHON)" -c 'import sys; v = sys.version_info[:2]; v < (3, 11) or print("%d.%d" % v)' 2>/dev/null)
PORT ?= 8000
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Prints a line when a command has ended, and its whole output if it failed.
STEP := .ci/step
# Pip names packages, and not the network that it does not reach.
NOT_INSTALLED := { echo "Packages cannot be installed. Check the network and the index of pip (pip config list), and repeat." >&2; exit 1; }
# Installed, marked by an empty file: what the service needs, and what its developers need.
RUNTIME := .venv/.runtime-$(PYTHON_VERSION)
DEV := .venv/.dev-$(PYTHON_VERSION)

# Commands are not printed. `make VERBOSE=1 …` prints them.
ifndef VERBOSE
.SILENT:
endif
MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
.PHONY: help install run port test check quick lint types pytest thorough notebooks notebooks-update lab smoke fuzz deployed mutants bench wrk golang soak browser chromium nginx promtool promtool-installed wordpress plugin failover failover-programs image image-tools clients package package-tools audit docs fmt openapi messages reference clean

help: ## list the targets
	awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' Makefile

install: $(DEV) ## create .venv with everything that a developer needs

run: port $(RUNTIME) ## run the service with demo data on PORT=8000 until Ctrl-C
	$(BIN)/profilesvc demo --port $(PORT)

# Before the first installation, which takes a minute. If there is no Python, the installation reports it.
port:
	test -z "$(PYTHON_VERSION)" || "$(PYTHON)" -c 'import socket; s = socket.socket(); \
		s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", $(PORT)))' 2>/dev/null || \
		{ echo "Port $(PORT) is taken or not allowed. Choose another one: make run PORT=9000 (0: any free one)" >&2; exit 1; }

# The notebooks run next to mypy, which uses one core only.
test: $(DEV) ## check a change in eight minutes: lint, types, all notebooks, the tests except for those of `make thorough`
	$(MAKE) --jobs=3 lint types notebooks
	$(MAKE) pytest

# Tests with a target of their own.
ELSEWHERE := browser or clients or package or wordpress or failover or image or long
# The tests of a file run in one process, because they share servers. tests/conftest.py orders the files.
PARALLEL := --numprocesses=auto --maxprocesses=6 --dist=loadfile --no-loadscope-reorder

# In parallel, because mypy uses one core only.
check: $(DEV) ## check a change in two minutes: lint, types, unit tests, the API tests on SQLite, the docs
	$(BIN)/ruff check --quiet .
	$(MAKE) --jobs=3 lint types quick

# Without tests that take more than a second, and test_english.py, which `lint` runs. Two processes: each imports for 5 s, and `lint` and `types` run beside them.
quick: $(DEV)
	$(STEP) "quick tests" $(BIN)/pytest -q --numprocesses=2 --dist=worksteal -m 'not (postgres or slow or thorough or long)' \
		tests/unit tests/api tests/docs $(filter-out tests/test_english.py,$(wildcard tests/test_*.py))

lint: $(DEV) ## check the style of the code and of its English
	$(STEP) lint sh -c '$(BIN)/ruff check . && $(BIN)/ruff format --check . && \
		$(BIN)/codespell README.md SECURITY.md CHANGELOG.md CONTRIBUTING.md CODE_OF_CONDUCT.md docs deploy src'
	$(STEP) English $(BIN)/pytest -q --noconftest -p no:randomly tests/test_english.py

types: $(DEV) ## check the types
	$(STEP) types $(BIN)/mypy

# `lint` runs tests/test_english.py.
pytest: $(DEV) ## run the tests of `make test`
	$(STEP) --about "6 min" tests $(BIN)/pytest -q $(PARALLEL) -m 'not (thorough or $(ELSEWHERE))' --ignore=tests/test_english.py

thorough: $(DEV) ## run the tests that take long, and on PostgreSQL those of the API that `make test` runs on SQLite
	$(STEP) --about "10 min" "thorough tests" $(BIN)/pytest -q $(PARALLEL) -m 'thorough and not ($(ELSEWHERE))'

# One process runs a whole notebook, so its cells run in order (see notebooks/conftest.py).
notebooks: $(DEV) ## run all notebooks and compare their outputs
	$(STEP) --about "2 min" notebooks $(BIN)/pytest -q -p no:randomly $(PARALLEL) --nbval notebooks --nbval-cell-timeout=60

notebooks-update: $(DEV) ## run all notebooks and store their outputs
	$(BIN)/ruff format notebooks
	$(BIN)/python -m profilesvc.lab.notebooks update

lab: $(DEV) ## open the notebooks in JupyterLab
	$(BIN)/profilesvc lab

# Exported, because a token on a command line can be seen by everyone on the machine.
smoke: export PROFILESVC_LAB__TARGET = $(BASE_URL)
smoke: export PROFILESVC_LAB__USER_TOKEN = $(USER_TOKEN)
smoke: export PROFILESVC_LAB__LOCATION = $(LOCATION)
smoke: export PROFILESVC_LAB__WRITE = $(or $(SMOKE_WRITE),0)
smoke: $(DEV) ## run the notebooks against a deployed service: BASE_URL=… USER_TOKEN=… LOCATION=… SMOKE_WRITE=1 PAGES=…
	$(BIN)/python -m profilesvc.lab.notebooks smoke $(PAGES)

# Other runs end after an hour (pyproject.toml).
FOR_DAYS := --session-timeout=259200

# This takes hours: random tests run thousands of times, and the tests that measure time run too.
fuzz: $(DEV) ## run the long tests: token mutation, Schemathesis, races, crashes, timing
	PROFILESVC_FUZZ=1 $(BIN)/pytest -q -m 'fuzz or long' $(PARALLEL) $(FOR_DAYS)
	$(MAKE) failover ROUNDS=50

# All tests share the processes, so they run one after another: 10 to 15 minutes.
WORKERS ?= 4
deployed: $(DEV) ## run the API tests against WORKERS=4 processes on PostgreSQL behind one port
	PROFILESVC_DEPLOYED=$(WORKERS) $(BIN)/pytest -q -rs tests/api tests/identity tests/dashboard

mutants: $(DEV) ## change the code that guards tenants, one place at a time, and check that a test fails
	$(BIN)/python tests/mutation/mutants.py

bench: $(DEV) wrk $(if $(findstring --short,$(BENCH)),,golang) ## measure the service next to its peers, and write docs/performance.md; BENCH=--short runs each once
	$(PIP) --group bench
	$(BIN)/python -m benchmarks $(BENCH)

# wrk is installed by apt if possible; otherwise Python makes the load.
wrk:
	command -v wrk >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends wrk; } || \
		echo "wrk cannot be installed here: the load is made by Python" >&2

# Go and its driver are installed by apt if possible; otherwise the anchor in Go is skipped.
golang:
	test -d /usr/share/gocode/src/github.com/jackc/pgx/v4 && command -v go >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends golang-go golang-github-jackc-pgx-v4-dev; } || \
		echo "Go cannot be installed here: its anchor is skipped" >&2

soak: $(DEV) ## apply mixed load for MINUTES=60 on DATABASE=sqlite, and check that memory does not grow
	$(PIP) --group bench
	$(BIN)/python -m benchmarks.soak --minutes $(or $(MINUTES),60) --database $(or $(DATABASE),sqlite)

# Chromium is installed by apt if possible. Screenshots are in build/browser afterwards.
browser: docs ## test the dashboard, the notebooks and the site in Chromium
	$(PIP) --group browser
	$(MAKE) chromium
	$(BIN)/pytest -m browser tests/browser $(BROWSER)

chromium:
	for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
		apt-get update -qq && \
		apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core fonts-noto-color-emoji

# nginx is installed by apt if possible; otherwise its tests are skipped.
nginx:
	command -v nginx >/dev/null || test -x /usr/sbin/nginx || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends nginx-light; }

# promtool of Debian's package, which is unpacked and not installed, because that would start Prometheus.
PROMTOOL := build/prometheus
promtool: $(DEV) promtool-installed ## test the alerts of deploy/prometheus/ by promtool
	$(BIN)/pytest -q -rs tests/deploy/test_monitoring.py

promtool-installed:
	mkdir -p $(PROMTOOL)
	command -v promtool >/dev/null || test -x $(PROMTOOL)/usr/bin/promtool || { apt-get update -qq && cd $(PROMTOOL) && \
		apt-get download -qq -o APT::Sandbox::User=root prometheus && \
		dpkg-deb --fsys-tarfile prometheus_*.deb | tar x ./usr/bin/promtool; } || \
		echo "promtool cannot be installed here: its tests are skipped" >&2

# WordPress, PHP and MariaDB are installed by apt if possible; this does not start their services.
WORDPRESS := wordpress php-cli php-intl php-mysql mariadb-server-core mariadb-client-core php-codesniffer
wordpress: $(DEV) ## test the plugin of examples/ in WordPress
	{ test -d /usr/share/wordpress && command -v phpcs >/dev/null && test -x /usr/sbin/mariadbd; } || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $(WORDPRESS); } || \
		echo "WordPress cannot be installed here: its tests are skipped" >&2
	$(BIN)/pytest -q -rs -m 'wordpress or php' tests/wordpress

PLUGIN := build/plugin
plugin: $(DEV) ## build the plugin of examples/ as a zip file that wp-admin installs: build/plugin/profilesvc.zip
	PYTHONPATH=tests $(BIN)/python -m support.clients.plugin_zip $(PLUGIN)

# etcd and HAProxy are installed by apt if possible, Patroni by pip; this does not start their services.
ROUNDS ?= 1
failover: $(DEV) failover-programs ## test ROUNDS=1 of each failure in a cluster of six hosts on this machine
	test -x build/failover/bin/python || $(BIN)/python -m venv build/failover
	build/failover/bin/pip install --quiet --disable-pip-version-check --requirement tests/failover/python.txt || \
		echo "PyPI cannot be reached" >&2
	PROFILESVC_FAILOVER_ROUNDS=$(ROUNDS) $(BIN)/pytest -q -rs -m failover tests/failover $(FOR_DAYS) $(FAILOVER)

failover-programs:
	{ command -v etcd && command -v etcdctl && { command -v haproxy || test -x /usr/sbin/haproxy; }; } >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends etcd-server etcd-client haproxy; } || \
		echo "etcd and HAProxy cannot be installed here: the tests are skipped" >&2

# podman and mmdebstrap are installed by apt if possible. The base of the image is made of Debian's packages.
image: $(DEV) image-tools ## build the image of Containerfile, and test it in containers
	$(BIN)/pytest -q -rs -m image tests/image

image-tools:
	{ command -v podman && command -v crun && command -v mmdebstrap; } >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends podman crun mmdebstrap; } || \
		echo "podman and mmdebstrap cannot be installed here: the tests are skipped" >&2

# npm is installed by apt if possible. Without the timeout it would retry for many minutes if the registry is down.
NPM := { command -v npm >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends npm; }; } && \
	timeout 300 npm install --silent --no-save --no-audit --no-fund --fetch-retries=1 --prefix

# Generators, linters and OAuth libraries from PyPI, npm and Debian. If one cannot be installed, its tests are skipped.
CLIENTS := build/clients
clients: $(DEV) ## test the API with generators, linters and OAuth libraries of other projects
	mkdir -p $(CLIENTS)
	test -x $(CLIENTS)/venv/bin/python || $(BIN)/python -m venv $(CLIENTS)/venv
	$(CLIENTS)/venv/bin/pip install --quiet --disable-pip-version-check --requirement tests/clients/python.txt || \
		echo "PyPI cannot be reached" >&2
	test -d /usr/share/php/GuzzleHttp || { apt-get update -qq && \
		apt-get install -y -qq --no-install-recommends php-cli php-curl php-mbstring php-xml php-guzzlehttp-guzzle; } || \
		echo "Guzzle cannot be installed here" >&2
	$(NPM) $(CLIENTS) $$(cat tests/clients/npm.txt) || echo "npm packages cannot be installed here" >&2
	$(BIN)/pytest -q -rs -m clients tests/clients

# An environment of its own, because the tools bring packages that the service must not need by accident.
PACKAGE := build/package
package: $(DEV) package-tools ## build the sdist and the wheel, and test them in new environments; writes build/package/sbom.json
	$(BIN)/pytest -q -rs -m package tests/package

package-tools: $(DEV)
	mkdir -p $(PACKAGE)
	test -x $(PACKAGE)/venv/bin/python || $(BIN)/python -m venv $(PACKAGE)/venv
	{ $(PACKAGE)/venv/bin/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' && \
		$(PACKAGE)/venv/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt --group package; } || \
		echo "PyPI cannot be reached" >&2

# Strict, because a package without advisories would count as one without vulnerabilities.
audit: package-tools ## look for known vulnerabilities in constraints.txt; needs the advisories of PyPI
	$(PACKAGE)/venv/bin/pip-audit --strict --disable-pip --no-deps --requirement constraints.txt

MERMAID := mermaid@11.17.2
docs: plugin ## build the website of all pages in build/site
	$(STEP) --about "1 min" "installing the tools of the site" $(PIP) --group docs || $(NOT_INSTALLED)
	mkdir -p build/docs/static
	{ $(NPM) build/docs $(MERMAID) >/dev/null && cp build/docs/node_modules/mermaid/dist/mermaid.min.js build/docs/static; } || \
		echo "Mermaid cannot be installed here: the site has its diagrams as text" >&2
	$(STEP) --about "1 min" "the site in build/site" $(BIN)/sphinx-build -q -W -c docs . build/site

fmt: $(DEV) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The examples are recorded from the running service, and the document contains them.
openapi: $(DEV) ## record the examples of the API and write openapi.json
	cd tests && ../$(BIN)/python -m support.examples.examples
	$(BIN)/profilesvc openapi -o openapi.json

messages: $(DEV) ## add new texts of the pages to the catalogues of translators, and remove those that are gone
	cd tests && ../$(BIN)/python -m support.pages.messages

reference: $(DEV) ## write what comes from the code: tables and examples of docs/, texts of the plugin
	cd tests && for each in tables regions translations kubernetes; do ../$(BIN)/python -m support.pages.$$each || exit 1; done

clean: ## remove .venv, caches and builds; var/ stays
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNTIME): pyproject.toml constraints.txt
	test -n "$(PYTHON_VERSION)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3" >&2; exit 1; }
	{ $(BIN)/python -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "$(PYTHON_VERSION)")' && \
		$(BIN)/pip --version; } >/dev/null 2>&1 || $(STEP) "creating .venv" "$(PYTHON)" -m venv --clear .venv
	$(STEP) --about "50 s" "installing the service" sh -c \
		'$(BIN)/pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1" && $(PIP) --editable ".[server]"' || \
		$(NOT_INSTALLED)
	touch $@

$(DEV): $(RUNTIME)
	$(STEP) --about "1 min" "installing the tools of developers" $(PIP) --group dev || $(NOT_INSTALLED)
	touch $@
