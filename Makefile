# Every target sets up what it needs: a virtual environment, a pinned uv, the locked dependencies.
VENV  := .venv
READY := $(VENV)/.ready
# An empty PYTHONTZPATH: zones come from the pinned tzdata alone. Bytecode is what makes the second start quick.
RUN   := env -u PYTHONDONTWRITEBYTECODE PYTHONTZPATH= $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help run demo psql streams mail fmt test faults lint check proto client bench bench-plot clean again

help:            ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

run: $(READY)    ## run PostFlow until Ctrl-C (ARGS=--reset wipes its data, ARGS="--without queue" leaves one out)
	@exec $(RUN)/python -m devstack up $(ARGS)

demo: $(READY)   ## run a stack in a temporary folder and follow one post until it is published
	@exec $(RUN)/python -m devstack demo $(ARGS)

psql: $(READY)   ## open a service's database, while it runs (SERVICE=queue ARGS="-c 'table slot'")
	@exec $(RUN)/python -m devstack psql $(or $(SERVICE),$(error name the service: make psql SERVICE=queue)) -- $(ARGS)

streams: $(READY) ## show streams, consumers, their lag, the next messages, while it runs (ARGS="--peek 20")
	@exec $(RUN)/python -m devstack streams $(ARGS)

mail: $(READY)   ## show the newest mails that people would get (ARGS="--count 20", or ARGS=ID for a whole one)
	@exec $(RUN)/postflow mailbox $(ARGS)

fmt: $(READY)    ## format code and protos, and mend what ruff can mend
	$(VENV)/bin/ruff check --quiet --fix-only .
	$(VENV)/bin/ruff format --quiet .
	BUF_CACHE_DIR=$(CURDIR)/.tools/cache/buf $(VENV)/bin/buf format -w protos

test: $(READY)   ## every test, on real servers (ARGS="tests/unit -k slot" narrows)
	@exec $(RUN)/pytest $(ARGS)

faults: $(READY) ## break everything while authors work, seed after seed (ARGS="--seeds 20 --posts 300", or "--failpoints kill drop")
	@exec $(RUN)/python -m testkit.stack.mixed_run $(ARGS)

lint: $(READY)   ## format, lint, types, import contracts, protos, freshness of generated code
	tools/lint

check:           ## all that CI runs: lint, then every test
	@.ci/run

proto: $(READY)  ## generate libs/postflow from protos/
	tools/generate

client: $(READY) ## build the wheel of stubs for programs that call PostFlow, into dist/
	tools/client dist

bench: $(READY)  ## run the benchmarks, or a part of them (ARGS=calendar); writes benchmarks/out/latest.json
	@exec $(RUN)/python -m benchmarks.run $(ARGS)

bench-plot: $(READY) ## plot benchmarks/history.jsonl; writes benchmarks/out/history.svg
	@exec $(RUN)/python -m benchmarks.plot $(ARGS)

clean:           ## remove the virtual environment and caches (never the data in .postflow)
	rm -rf $(VENV) .tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find libs services tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Set up here? A copied or moved folder, or one whose Python is gone, is set up again.
ifneq ($(shell { cat $(READY) && $(VENV)/bin/python -c ''; } 2>/dev/null),$(CURDIR))
$(READY): again
endif
$(READY): pyproject.toml uv.lock tools/bootstrap
	@tools/bootstrap $(VENV)
