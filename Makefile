# The same commands for people and for CI. Each makes .venv and installs what it needs.
#   make install      dragoman alone: .venv/bin/dragoman
#   make demo         watch a Transformer learn to translate (5 to 10 minutes on two cores that do nothing else)
#   make test         the tests
#   make test-faults  the fault suite at its full figures, one line a row (takes long; its quick half is in `make test`)
#   make test-browser the pages and the documentation in a real browser (installs Chromium and node)
#   make test-node    DeepL's library for Node.js (installs it, and node)
#   make judges       the harnesses of all earlier issues: test-foreign, every option past its limit, documents that lost something
#   make test-foreign what other projects' tests and programs expect (downloads Marian: 600 MB)
#   make test-ray     bulk translation on a local Ray cluster (installs Ray: half a gigabyte)
#   make wheel        a wheel and a source distribution in dist/; test-wheel tries the wheel in an empty environment
#   make test-newest  the tests with the newest torch that pip finds, in an environment of its own
#   make docs         the documentation as a site in docs/_build/html, in English and Chinese
#   make check        formatting, lint, types, import layers
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
DATA ?= data
# PyTorch's CPU build where there is no NVIDIA GPU: 1 GB of disk instead of more than 5. If its page cannot be reached,
# the usual index is asked. make TORCH_INDEX= takes the usual one at once
TORCH_INDEX ?= $(if $(shell command -v nvidia-smi),,--index-url https://download.pytorch.org/whl/cpu)

.PHONY: install docs wheel test-wheel test-newest demo demo-zh test test-slow test-faults test-browser test-node test-ray test-foreign judges check bench bench-data clean

PIP := $(BIN)/pip install --disable-pip-version-check --constraint constraints.txt

define ENVIRONMENT
@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"dragoman needs Python 3.11 or newer, {sys.executable} is {v.major}.{v.minor}: make PYTHON=...")'
@$(PYTHON) -m venv .venv || { apt-get update -qq && apt-get install -qq -y python3-venv && $(PYTHON) -m venv .venv; }
$(PIP) $(1) --no-deps --retries 1 $(TORCH_INDEX) torch || echo "torch comes from the usual index"
endef

.venv/ready: pyproject.toml constraints.txt
	$(call ENVIRONMENT,--quiet)
	$(PIP) --quiet --editable '.[dev]'
	touch $@

.venv/installed: pyproject.toml constraints.txt
	$(call ENVIRONMENT)
	$(PIP) --editable .
	@touch $@
	@echo 'Installed. Try it:  .venv/bin/dragoman translate demo -i'

# what the other targets install holds it too
install: $(if $(wildcard .venv/ready),.venv/ready,.venv/installed)

demo: .venv/ready
	$(BIN)/dragoman demo

demo-zh: .venv/ready
	$(BIN)/dragoman demo --to zh

# a process for each of up to 8 cores; a file stays in one, for what its tests share. msgfmt judges message catalogues;
# who may not install it skips that judge
test: .venv/ready
	-command -v msgfmt >/dev/null || { apt-get update -qq && apt-get install -qq -y gettext; }
	$(BIN)/pytest -n logical --maxprocesses 8 --dist loadfile --no-loadscope-reorder

test-slow: .venv/ready
	$(BIN)/pytest -m slow

test-faults: .venv/ready
	-[ -x /usr/sbin/nginx ] || { apt-get update -qq && apt-get install -qq -y nginx-light; }
	$(BIN)/pytest tests/faults -m '(faults or not faults) and not alone' -n logical --maxprocesses 4 --dist worksteal -s --durations 15; \
	together=$$?; $(BIN)/pytest tests/faults -m alone -s --durations 10 && exit $$together

# pages in a real browser: Debian's Chromium, driven by Playwright; and the page that translates by itself, in node
test-browser: .venv/ready
	command -v chromium chromium-browser google-chrome >/dev/null || { apt-get update -qq && apt-get install -qq -y chromium; }
	command -v node >/dev/null || { apt-get update -qq && apt-get install -qq -y nodejs; }
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[browser,docs]'
	$(BIN)/python -m docs.site
	$(BIN)/pytest tests/browser tests/pages tests/toolkits/test_page.py -m 'browser or not browser'

# DeepL's library for Node.js against a live server; what it sends is also recorded, for the plain tests
test-node: .venv/ready
	{ command -v node && command -v npm; } >/dev/null || { apt-get update -qq && apt-get install -qq -y nodejs npm; }
	npm install --silent --no-save --ignore-scripts --prefix .bench/node deepl-node@1.28.0
	DEEPL_NODE='$(CURDIR)/.bench/node/' $(BIN)/pytest tests/serving -m node

# what other projects' tests and programs expect of this code. Marian is a package of its own, for a few Pythons only;
# from the source packages come the files of their tests. A peer that cannot be had is named, and its values are skipped
PEERS := .bench/foreign
test-foreign: .venv/ready
	mkdir -p $(PEERS)
	ls $(PEERS)/pymarian/_pymarian*.so > /dev/null 2>&1 || $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target $(PEERS)/pymarian pymarian==1.12.42 || echo "there is no Marian for this machine and Python"
	for package in sacrebleu-2.6.0 sentencepiece-0.2.1; do test -f $(PEERS)/$$package.tar.gz || $(BIN)/pip download --quiet --disable-pip-version-check --no-deps --no-binary $${package%-*} --dest $(PEERS) $${package/-/==} || echo "$$package cannot be downloaded"; done
	DATA=$(if $(filter command line environment,$(origin DATA)),$(DATA)) $(BIN)/pytest tests/foreign -m 'foreign or not foreign'

# a cluster of two workers on this machine
test-ray: .venv/ready
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[ray]'
	$(BIN)/pytest tests/bulk -m 'ray or not ray'

# offline once its packages are there; a warning, a dead link or a number that is not its result's ends it
docs: .venv/ready
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m docs.site

wheel: .venv/ready
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

test-wheel: wheel
	$(BIN)/python -m benchmarks.install --wheel dist/*.whl $(if $(RUN),--run $(RUN))

# whatever pyproject.toml says of torch
test-newest: .venv/ready
	$(PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/pip install --quiet --disable-pip-version-check '.[dev]'
	.venv-newest/bin/pip install --quiet --disable-pip-version-check --upgrade torch
	.venv-newest/bin/pip uninstall --quiet --yes dragoman
	PYTHONPATH=src .venv-newest/bin/python -c 'import torch; print("torch", torch.__version__)'
	PYTHONPATH=src .venv-newest/bin/python -m pytest -n logical --maxprocesses 8 --dist loadfile

# those who judge, and did not write the code: run before an issue is closed
judges: test-foreign
	$(BIN)/pytest tests/test_declared_options.py tests/golden tests/documents/test_trial.py

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# all comparisons (hours), or NAME=training, NAME='decoding latency' RUN=runs/mine; benchmarks/README.md says which
# there are. Without DATA, or what belongs in it, embedded text takes its place. Peers are installed below .bench.
bench: .venv/ready
	$(BIN)/python -m benchmarks $(NAME) --data $(DATA) $(if $(RUN),--run $(RUN))

# needs the corpora that benchmarks/README.md names, in DATA
bench-data: .venv/ready
	$(BIN)/python -m benchmarks.prepare --data $(DATA)
	$(BIN)/python -m benchmarks.quality multi30k --data $(DATA) --out runs/bench
	$(BIN)/python -m benchmarks.quality tatoeba --data $(DATA) --out runs/bench
	$(BIN)/python -m benchmarks.doctor --data $(DATA)

clean:
	rm -rf .venv .venv-newest .bench build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
