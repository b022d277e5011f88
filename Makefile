# Alcove. `make help` explains every target; targets say what they do after `##`.
SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Any Python from 3.11 on makes the venv; everything else runs in it.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
PY := .venv/bin/python
ALCOVE := $(PY) -m infra.cli
# Files of tests that share a machine-wide thing (engine, database, browser) run one after another.
WORKERS ?= 2

.PHONY: help run init up down images test check fast soak sabotage fmt lock screenshots doctor \
	venv-run venv-dev pages python

help: ## Show this help
	@echo "Alcove: every person an AI assistant of their own. To try it: make run"
	@echo
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: export ALCOVE_BEGAN_AT := $(shell date +%s)
run: venv-run pages ## Start everything on loopback; nothing to configure. Ctrl-C ends it
	@$(ALCOVE) run

init: venv-run ## Write .env for Docker Compose, once (secrets, addresses); never overwrites
	@$(ALCOVE) init

up: ## Bring up Docker Compose and wait until all is healthy
	docker compose up -d --wait

down: venv-run ## Stop tenants, then services of Docker Compose; every volume stays
	@$(ALCOVE) down

images: venv-run pages ## Build the images (and their bases, where no image registry answers)
	@$(ALCOVE) images

doctor: venv-run ## Say what this machine has, lacks, and what each lack costs
	@$(ALCOVE) doctor

test: venv-dev pages ## Everything: checks, unit, contract and journey tests. As root on Debian installs what is missing
	@$(PY) -m infra.setup.suite

check: venv-dev ## Format, lint, types, import rules; no tests
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -c 'from importlinter.cli import lint_imports_command as run; run()'

fast: venv-dev pages ## The inner loop: tests that need no container, browser or database server (< 60 s)
	$(PY) -m ruff check .
	$(PY) -m pytest -q -n $(WORKERS) -m "not thorough and not slow and not soak and not docker and not postgres and not browser and not compose"

soak: venv-dev pages ## Every fault matrix, whole; takes half an hour. Its last line says what ran
	$(PY) -m pytest -v -n $(WORKERS) -p tests.tally -m soak --durations=10

sabotage: venv-dev pages ## Small defects on purpose: each must turn the tests red
	$(PY) -m tests.sabotage

fmt: venv-dev ## Format the code and apply safe lint fixes
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

lock: venv-dev ## Pin dependencies anew: requirements/*.lock, with hashes, without addresses
	@$(PY) -m infra.setup.lock

screenshots: venv-dev pages ## Take the pages' pictures, both themes and 390 px
	$(PY) -m tests.browser.screenshots

bench-%: venv-dev pages ## Measure one thing beside its peers, e.g. make bench-relay
	$(PY) -m tests.bench.$*

python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed. On Debian or Ubuntu: apt-get install python3 python3-venv"; exit 1; }

venv-run: python
	@$(PYTHON) -m infra.setup.venv run

venv-dev: python
	@$(PYTHON) -m infra.setup.venv dev

pages: python
	@if test -x $(PY); then $(PY) -m infra.setup.pages; else $(PYTHON) -m infra.setup.pages; fi
