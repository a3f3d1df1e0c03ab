# Every target sets up what it needs: a virtual environment, a pinned uv, the locked dependencies.
PYTHON ?= python3.11
VENV   := .venv
READY  := $(VENV)/.ready
RUN    := PYTHONTZPATH= $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help run demo test lint check proto bench clean

help:            ## print this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(READY)    ## run PostFlow here: embedded PostgreSQL and NATS, the four services (ARGS=--reset wipes)
	@exec env $(RUN)/postflow up $(ARGS)

demo: $(READY)   ## run the stack in a temporary folder and follow one post until it is published
	@exec env $(RUN)/postflow demo

test: $(READY)   ## every test, on real servers (ARGS="tests/unit -k slot" narrows)
	$(RUN)/pytest $(ARGS)

lint: $(READY)   ## format, lint, types, import contracts, protos, freshness of generated code
	tools/lint

check: lint test ## all that CI runs

proto: $(READY)  ## generate libs/postflow from protos/
	tools/generate

bench: $(READY)  ## measure the pipeline on embedded servers; writes benchmarks/out/latest.json
	$(RUN)/python -m benchmarks.run $(ARGS)

clean:           ## remove the virtual environment and caches (never the data in .postflow)
	rm -rf $(VENV) .tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

$(READY): pyproject.toml uv.lock tools/bootstrap
	@PYTHON=$(PYTHON) tools/bootstrap $(VENV)
