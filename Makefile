# The words of the README's first screen. STACK names a stack file, Pulumi.<stack>.yaml.
STACK ?= dev
PYTHON ?= python3
PRODUCT := .venv/.product
DEVELOP := .venv/.develop
TRAIN := .venv/.train
REHEARSAL := .venv/bin/python -m rehearsal

.PHONY: up down status preview check plan migrate test lint soak bench kubeconfig env schema train-real

up: $(DEVELOP)            ## from nothing to every job of the stack finished
	@$(REHEARSAL) up --stack $(STACK)

down: $(DEVELOP)          ## take everything away; one stack only with STACK=
	@$(REHEARSAL) down $(if $(filter command environment,$(firstword $(origin STACK))),--stack $(STACK))

status: $(DEVELOP)        ## what runs, and what is wrong
	@$(REHEARSAL) status --stack $(STACK)

preview: $(DEVELOP)       ## what `make up` would do
	@$(REHEARSAL) preview --stack $(STACK)

kubeconfig: $(DEVELOP)    ## print the path of a kubeconfig
	@$(REHEARSAL) kubeconfig --stack $(STACK)

env: $(DEVELOP)           ## print exports for pulumi, kubectl, helm and aws
	@$(REHEARSAL) env --stack $(STACK)

soak: $(DEVELOP)          ## what takes too long for every day: every mistake in a world, then kills at random moments
	@.venv/bin/pytest -m soak
	@.venv/bin/python -m rehearsal.soak

check: $(PRODUCT)         ## can this stack file work? no engine, no cluster; LIVE=1 asks the account, and only reads
	@.venv/bin/python -m stacks.reports.check $(if $(filter 1,$(LIVE)),--live $(if $(DEADLINE),--deadline $(DEADLINE))) $(STACK)

plan: $(PRODUCT)          ## what a stack file comes to: nodes, minutes, money; JSON=1 for machines
	@.venv/bin/python -m stacks.reports.plan $(STACK) $(if $(JSON),--json)

migrate: $(PRODUCT)       ## FILE=job.yaml: a PyTorchJob or TrainJob as a stack-file entry, with what is wrong with it
	@.venv/bin/python -m stacks.manifests.migrate $(FILE)

test: $(DEVELOP)          ## all of them; what needs a world is skipped where there can be none
	@$(REHEARSAL) build
	@.venv/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder
	@test -e $(TRAIN) || echo "skipped: real training with torch; make train-real installs it (3.8 GB) and trains"

train-real: $(TRAIN)      ## torch for the CPU: the samples of workloads/ trained, alone and in a world
	@$(REHEARSAL) build
	@.venv/bin/pytest tests/test_workloads.py tests/worlds/test_training_world.py

lint: $(DEVELOP)
	@.venv/bin/ruff format --check && .venv/bin/ruff check && .venv/bin/pyright

bench: $(DEVELOP)
	@.venv/bin/python -m benchmarks

schema: $(PRODUCT)        ## the JSON schema of stack files, for editors
	@.venv/bin/python -m stacks.reports.check --schema > docs/stack.schema.json

$(PRODUCT): requirements.txt
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(DEVELOP): requirements-dev.txt
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $(PRODUCT) $@

$(TRAIN): requirements-train.txt $(DEVELOP)
	@.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@
