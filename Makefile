# make demo   the main job end to end on real recordings, CPU only
# make test   everything that works with pip alone
# The rest: make help
PYTHON ?= python3
CORES ?= 2
BIN := .venv/bin
# Byte code is written when a module is first imported, not for all of torch beforehand.
INSTALL := pip install --quiet --no-compile

.PHONY: help demo demo-roma demo-minicpmo test test-light test-heavy test-peers test-system test-slurm test-browser lint bench bench-gpu bench-roma bench-tts bench-minicpmo clean

help:
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

# One environment for the workflow, the embedded model and the tests; pip alone, no root.
.venv/workflow.done: requirements/workflow.txt requirements/cascade.txt
	$(PYTHON) -m venv .venv
	$(BIN)/$(INSTALL) --requirement requirements/workflow.txt --requirement requirements/cascade.txt
	touch $@

.venv/dev.done: .venv/workflow.done requirements/dev.txt
	$(BIN)/$(INSTALL) --requirement requirements/dev.txt
	touch $@

# The manifest names the samples, so each step that makes or changes it is a run of its own.
DEMO := $(BIN)/snakemake --directory .demo --cores $(CORES) \
	--configfile config/config.yaml config/models.yaml config/demo.yaml --

DEMO_ROMA := $(patsubst --,config/demo_roma.yaml --,$(DEMO))

demo: .venv/workflow.done ## raw sources -> videos -> checks -> embedded model -> audit page (.demo/)
	$(DEMO) demo_data
	$(DEMO) regenerate_hesitation
	$(DEMO) check_data
	$(DEMO) demo

# ROMA has an environment of its own (torch), so that plain `make demo` stays free of it.
.venv-roma/done: requirements/roma.txt
	$(PYTHON) -m venv .venv-roma
	.venv-roma/bin/$(INSTALL) --requirement requirements/roma.txt
	touch $@

.demo/roma-tiny: .venv-roma/done scripts/make_roma_tiny.py
	.venv-roma/bin/python scripts/make_roma_tiny.py $@

demo-roma: .venv/workflow.done .demo/roma-tiny ## the demo data through a tiny, RANDOM ROMA
	$(DEMO) demo_data
	$(DEMO) regenerate_hesitation
	$(DEMO_ROMA) audit_roma
	@echo "The weights of this ROMA are random: its answers mean nothing."
	@echo "Open $$PWD/.demo/results/audit_roma/index.html"

# The public code is fetched by whoever has it: HFD_PEERS=clones MINICPMO_PYTHON=its environment.
MINICPMO_PYTHON ?= $(CURDIR)/$(BIN)/python
DEMO_MINICPMO := MINICPMO_PYTHON=$(MINICPMO_PYTHON) PYTHONPATH=$(CURDIR) \
	$(patsubst --,config/demo_minicpmo.yaml --,$(DEMO))

demo-minicpmo: .venv/workflow.done ## the demo data through MiniCPM-o's runner: public code, else a double
	$(DEMO) demo_data
	$(DEMO) regenerate_hesitation
	$(DEMO_MINICPMO) audit_minicpmo
	@grep -ho '"name": "MiniCPM-o[^"]*"' .demo/results/minicpmo/*/provenance.json | sort -u
	@echo "Nobody's weights ran: the answers mean nothing."
	@echo "Open $$PWD/.demo/results/audit_minicpmo/index.html"

# All that `make test` installs: pip works on one core, so they are made side by side.
TEST_ENVIRONMENTS := .venv-kubernetes/done .venv-roma/test.done .venv-tts/test.done .venv-realtime/test.done

test: ## lint and all tests that need pip alone
	$(MAKE) --jobs $(CORES) $(TEST_ENVIRONMENTS)
	$(MAKE) lint test-light test-heavy

lint: .venv/dev.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/mypy
	$(BIN)/snakemake --lint

# Snakemake's Kubernetes executor beside .venv: in it, every start of Snakemake would be slower.
.venv-kubernetes/done: .venv/dev.done requirements/kubernetes.txt
	$(BIN)/$(INSTALL) --target .venv-kubernetes --no-deps --requirement requirements/kubernetes.txt
	touch $@

LIGHT := not heavy and not system and not gpu and not peers
STEALING := --dist worksteal --durations 20

# One process more than cores, as tests wait for Snakemake now and then. Those that measure real time
# mostly wait: they run among themselves, more of them at once.
test-light: .venv/dev.done .venv-kubernetes/done
	$(BIN)/python -m pytest -n $$(($(CORES) + 1)) $(STEALING) -m "not realtime and $(LIGHT)"
	$(BIN)/python -m pytest -n $$((2 * $(CORES))) $(STEALING) -m "realtime and $(LIGHT)"

# Tests with torch run in their model's own environment.
TEST_TOOLS := $(shell grep -E '^(pytest|pytest-rerunfailures|pytest-timeout|pytest-xdist|imageio-ffmpeg)==' requirements/dev.txt)

.venv-%/test.done: .venv-%/done
	.venv-$*/bin/$(INSTALL) $(TEST_TOOLS)
	touch $@

.venv-tts/done: requirements/tts.txt
	$(PYTHON) -m venv .venv-tts
	.venv-tts/bin/$(INSTALL) --no-deps --requirement requirements/tts.txt
	touch $@

# vLLM-Omni and Moshi pin what is not needed here (vLLM, an older torch): without dependencies.
.venv-realtime/done: requirements/realtime_peers.txt requirements/realtime_peers_nodeps.txt
	$(PYTHON) -m venv .venv-realtime
	.venv-realtime/bin/$(INSTALL) --requirement requirements/realtime_peers.txt
	.venv-realtime/bin/$(INSTALL) --no-deps --requirement requirements/realtime_peers_nodeps.txt
	touch $@

test-heavy: .venv-roma/test.done .venv-tts/test.done .venv-realtime/test.done
	.venv-roma/bin/python -m pytest -n $(CORES) --dist loadfile --durations 10 -m heavy tests/models/graphs tests/models/minicpmo tests/models/roma tests/models/duplexomni
	.venv-roma/bin/python -m pytest -m heavy tests/contract/test_contract.py --case roma
	.venv-tts/bin/python -m pytest -n $(CORES) --dist loadfile --durations 10 -m heavy tests/models/tts
	.venv-realtime/bin/python -m pytest -n $(CORES) --dist loadfile --durations 10 -m heavy tests/models/realtime tests/models/aero/test_foreign_server.py

# Other people's repositories, cloned by whoever runs this; docs/proof.md names the commits.
.venv-peers/done: requirements/peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/$(INSTALL) --requirement requirements/peers.txt
	touch $@

test-peers: .venv/dev.done .venv-peers/done .venv-realtime/test.done ## HFD_PEERS=folder of clones: against other people's servers and clients
	@test -d "$(HFD_PEERS)" || { echo "Set HFD_PEERS to a folder of clones: see docs/proof.md"; exit 1; }
	HFD_PEERS=$(abspath $(HFD_PEERS)) .venv-peers/bin/python -m pytest tests/peers
	HFD_PEERS=$(abspath $(HFD_PEERS)) $(BIN)/python -m pytest -m peers tests/judge
	HFD_PEERS=$(abspath $(HFD_PEERS)) $(MINICPMO_PYTHON) -m pytest -m peers tests/models/minicpmo/test_peer.py tests/models/gander
	HFD_PEERS=$(abspath $(HFD_PEERS)) .venv-realtime/bin/python -m pytest -m peers tests/models/realtime tests/contract -k "realtime"

# Snakemake's Slurm plugin slows every start, so it has an environment of its own.
.venv-slurm/done: requirements/slurm.txt requirements/dev.txt
	$(PYTHON) -m venv .venv-slurm
	.venv-slurm/bin/$(INSTALL) --requirement requirements/slurm.txt --requirement requirements/dev.txt
	touch $@

test-system: .venv-slurm/done .venv-roma/done ## faults on a real Slurm of one node; needs root and Debian packages
	tests/system/install.sh
	$(MAKE) --jobs $(CORES) --output-sync test-slurm test-browser

# There is one Slurm: its tests follow each other in one process.
test-slurm: .venv-slurm/done .venv-roma/done
	.venv-slurm/bin/python -m pytest --durations 15 -m system tests/system

test-browser: .venv-slurm/done
	.venv-slurm/bin/python -m pytest --durations 15 -m system tests/judge tests/test_environments.py

bench: .venv/dev.done demo ## what the workflow itself costs, and the audit of 5 x 1024 copies of the demo
	$(BIN)/python benchmarks/reader.py
	$(BIN)/python benchmarks/compile.py
	$(BIN)/python benchmarks/checks.py
	$(BIN)/python benchmarks/second_run.py
	$(BIN)/python benchmarks/audit_cost.py --root .demo --model cascade

bench-gpu: bench-roma bench-tts bench-minicpmo ## every figure of docs/performance.md that needs a GPU

bench-tts: .venv-tts/done
	.venv-tts/bin/python benchmarks/tts_frame.py

bench-roma: .venv-roma/done demo ## ROMA's steps on this machine's GPU, eager and accelerated in one run
	.venv-roma/bin/python benchmarks/roma_steps.py
	.venv-roma/bin/python benchmarks/roma_memory.py
	.venv-roma/bin/python benchmarks/roma_sessions.py

bench-minicpmo: ## MiniCPM-o's plain and captured loop on this machine's GPU, random weights (HFD_PEERS)
	HFD_PEERS=$(abspath $(HFD_PEERS)) $(MINICPMO_PYTHON) benchmarks/minicpmo_bench.py

clean: ## remove environments and the demo's folder
	rm -rf .venv .venv-* .demo
