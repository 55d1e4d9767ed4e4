# `make` lists the targets. Each sets up what is missing first; a second run takes no time for that.
.DEFAULT_GOAL := help
BIN := .venv/bin
NOTEBOOKS := find notebooks -name '*.ipynb' -not -path '*/.ipynb_checkpoints/*'
DOCS := $(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees docs site/docs
PYTEST := ../$(BIN)/python -m pytest
STRIP := $(BIN)/nbstripout --keep-id \
	--extra-keys 'metadata.papermill cell.metadata.papermill metadata.language_info.version'
# Kernels, clients and hosts of the lab start Python hundreds of times; uncompiled, each start takes 3 s longer.
unexport PYTHONDONTWRITEBYTECODE
# Matrices here are small: several threads of linear algebra wait for each other, with up to 15 times the processor time.
export OPENBLAS_NUM_THREADS := 1
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: ## install what is missing: system programs, .venv from requirements.txt, Kafka by Maven
	@scripts/system-packages.sh $(PURPOSE)
	@scripts/python-environment.sh
	@scripts/kafka-jars.sh

test quick fuzz fuzz-more: PURPOSE := tests

.PHONY: report
report: setup ## measure on this machine (a few minutes), analyse, and publish site/index.html
	-@$(DOCS)
	@$(BIN)/wanbench report

.PHONY: docs
docs: setup ## build this project's documentation, site/docs/index.html
	@$(DOCS)

.PHONY: studies
studies: setup ## measure every study, also those that `report` replays (about fifty minutes)
	@$(BIN)/wanbench report --measure

.PHONY: full
full: setup ## measure page 02 with 46 regions and all 2,070 ordered pairs (about ten minutes)
	@$(BIN)/wanbench report --preset full 02-intercloud-throughput

.PHONY: test
test: setup ## run every test: five at a time, as those with a lab mostly wait, then those that judge time, two at a time
	@cd lib && $(PYTEST) --numprocesses 5 -m "not timing"
	@cd lib && $(PYTEST) --numprocesses 2 -m timing $$(grep -l mark.timing tests/*.py)

.PHONY: quick
quick: setup ## run the tests that need no lab, no cluster and no browser, and take a moment
	@cd lib && $(PYTEST) --numprocesses 4 -m "not lab and not browser and not slow"

.PHONY: fuzz
fuzz: setup ## damage files for each reader, guided by coverage, for ten minutes of processor time (MINUTES=30, SEED=2)
	@$(BIN)/python scripts/fuzz.py --minutes $(MINUTES) --seed $(or $(SEED),1)

.PHONY: fuzz-more
fuzz-more: setup ## feed the readers thousands of files that hypothesis makes up, others each time (tens of minutes)
	@cd lib && $(PYTEST) --numprocesses 2 --hypothesis-profile fuzz -m fuzz tests

MINUTES := 10
.PHONY: torture
torture: setup ## inflict faults on small studies for ten minutes, and count what is lost or left (MINUTES=30 SEED=2 JOBS=4)
	@PYTHONPATH=lib $(BIN)/python -m torture --minutes $(MINUTES) --seed $(or $(SEED),1) --jobs $(or $(JOBS),3)

.PHONY: lab
lab: setup ## open JupyterLab on the notebooks
	@$(BIN)/jupyter labextension disable --level=sys_prefix @jupyterlab/apputils-extension:announcements 2>/dev/null
	@$(BIN)/jupyter lab $(AS_ROOT) --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks \
		--LabApp.news_url=None --LabApp.extension_manager=readonly \
		--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate

.PHONY: check
check: setup ## lint, format, types, insecure calls and notebook hygiene, without changing anything
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/basedpyright --warnings --project lib --pythonpath $(BIN)/python
	@$(BIN)/bandit --quiet --configfile lib/pyproject.toml --recursive lib/wanbench 2>/dev/null # it warns of each reason that it skips
	@$(BIN)/zizmor --offline --quiet .github/workflows
	@echo "Not run: known vulnerabilities of locked packages. The list is on the network: pip-audit --require-hashes -r requirements.txt"
	@$(NOTEBOOKS) -exec $(STRIP) --verify {} +

.PHONY: format
format: setup ## mend what the check can find: format, sort imports, strip notebooks of outputs
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format .
	@$(NOTEBOOKS) -exec $(STRIP) {} +

.PHONY: size
size: setup ## count the library's lines of code and docstrings, and its files, by room
	@$(BIN)/python scripts/size.py

.PHONY: bench
bench: setup ## run all benchmarks, and write their figures into docs/measured.md (about 80 minutes)
	@failed=0; for benchmark in $(filter-out benchmarks/measured.py,$(wildcard benchmarks/*.py)); do \
		$(BIN)/python "$$benchmark" || failed=1; done; $(BIN)/python benchmarks/measured.py; exit $$failed

.PHONY: validity
validity: setup ## count how often the intervals cover, into data/validity (tens of minutes; all processors)
	@$(BIN)/python -m simulations --processes "$$(nproc)"

PAGES := 01 02 05
.PHONY: samples
samples: setup ## record the committed samples of PAGES anew (on an idle machine; PAGES=06 for one longer study)
	@rm -rf build/recording
	@WANBENCH_DATA=build/recording $(BIN)/wanbench report $(PAGES)
	@for campaign in $$(ls build/recording/raw); do \
		rm -rf "data/samples/raw/$$campaign" && cp -R "build/recording/raw/$$campaign" data/samples/raw/ || exit 1; \
	done
	@$(BIN)/wanbench report --replay 02
	@cp site/figures/02-intercloud-throughput/throughput-against-rtt-1200x675.png data/samples/throughput-against-rtt.png

.PHONY: lock
lock: setup ## choose package versions anew and write requirements.txt, with hashes
	@$(BIN)/uv pip compile lib/pyproject.toml --all-extras --universal --python-version 3.11 --upgrade \
		--generate-hashes --no-header --quiet -o requirements.txt

.PHONY: clean
clean: ## remove what can be made again, except measurements and .venv
	@rm -rf site build lib/.pytest_cache .ruff_cache lib/.hypothesis
