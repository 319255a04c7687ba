# Needs Python 3.11 or 3.12, Java 17 and make. PYTHON=... and JAVA_HOME choose among several; ARGS=... is handed on.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup run test check bench cluster-up cluster-down cluster-test clean
export PYTHON JAVA_HOME

help: ## list the targets
	@while IFS= read -r line; do case $$line in [a-z]*:*'## '*) printf '%-12s %s\n' "$${line%%:*}" "$${line#*## }";; esac; done < Makefile

# Older makes export nothing to $(shell).
ask = PYTHON='$(PYTHON)' JAVA_HOME='$(JAVA_HOME)' ./setup.sh check

# $(error) and not a failing recipe: one line is all that make then prints.
setup: ## create .venv with all that is needed; again when setup.py or constraints.txt change
	$(eval answer := $$(shell $$(ask)))$(if $(filter install ready,$(firstword $(answer))),,$(error $(or $(answer),./setup.sh failed)))
	@$(if $(filter install,$(firstword $(answer))),./setup.sh install)

# On a slow machine it ends with the blocks that it has; again, it goes on.
run: setup ## measure on this machine: real MNIST, the quick profile, within five minutes
	@.venv/bin/yarnstick run --profile quick --max-minutes 4.5 $(ARGS)

test: setup ## the whole test suite
	@.venv/bin/python -m pytest -n 2 --dist loadfile $(ARGS)

check: setup ## lint, format and types
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy

bench: setup ## the speed ratios, as a table and in build/bench.json
	@.venv/bin/python -m bench $(ARGS)

cluster-up: setup ## a real HDFS and YARN on this machine, NODES=2; needs Maven the first time
	@.venv/bin/python -m cluster up $(if $(NODES),--nodes $(NODES)) $(ARGS)

cluster-down: setup ## end it; the data stays in build/cluster
	@.venv/bin/python -m cluster down

cluster-test: setup ## tests/cluster, on a fresh cluster in a directory of its own
	@.venv/bin/python -m cluster run --directory build/cluster-test $(if $(NODES),--nodes $(NODES)) -- .venv/bin/python -m pytest tests/cluster $(ARGS)

clean: ## remove .venv and what tools leave; downloads and measured runs stay in build
	@rm -rf .venv build/lib build/bdist.* *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -path ./build -prune -o -name __pycache__ -type d -exec rm -rf {} +
