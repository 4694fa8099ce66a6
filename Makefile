# Every word of the README's table. STACK names a stack file, Pulumi.<stack>.yaml.
STACK ?= dev
PYTHON ?= python3
PRODUCT := .venv/.product
DEVELOP := .venv/.develop
TRAIN := .venv/.train
REHEARSAL := .venv/bin/python -m rehearsal

.PHONY: help up down status preview check plan migrate test lint soak bench kubeconfig env schema train-real

help:                     ## print these words
	@echo "make WORD [STACK=dev]; WORD is one of:"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) \
		| while IFS='|' read -r word text; do printf '  %-12s%s\n' "$$word" "$$text"; done

up: $(DEVELOP)            ## create the stack and wait for its jobs, in a rehearsal on this machine
	@$(REHEARSAL) up --stack $(STACK)

down: $(DEVELOP)          ## delete everything that `make up` created; only one stack with STACK=
	@$(REHEARSAL) down $(if $(filter command environment,$(firstword $(origin STACK))),--stack $(STACK))

status: $(DEVELOP)        ## show what runs, and why a job does not
	@$(REHEARSAL) status --stack $(STACK)

preview: $(DEVELOP)       ## show what `make up` would change
	@$(REHEARSAL) preview --stack $(STACK)

kubeconfig: $(DEVELOP)    ## print the path of a kubeconfig for the rehearsal
	@$(REHEARSAL) kubeconfig --stack $(STACK)

env: $(DEVELOP)           ## print exports for pulumi, kubectl, helm and aws
	@$(REHEARSAL) env --stack $(STACK)

soak: $(DEVELOP)          ## run the slow tests: each known mistake, then kills at random moments
	@.venv/bin/pytest -m soak
	@.venv/bin/python -m rehearsal.soak

check: $(PRODUCT)         ## check a stack file; LIVE=1 also asks the AWS account, which is only read
	@.venv/bin/python -m stacks.reports.check $(if $(filter 1,$(LIVE)),--live $(if $(DEADLINE),--deadline $(DEADLINE))) $(STACK)

plan: $(PRODUCT)          ## print nodes, quota, minutes and cost of a stack file; JSON=1 for programs
	@.venv/bin/python -m stacks.reports.plan $(STACK) $(if $(JSON),--json)

migrate: $(PRODUCT)       ## FILE=job.yaml: print a PyTorchJob or TrainJob as a stack-file entry, with its errors
	@.venv/bin/python -m stacks.manifests.migrate $(FILE)

test: $(DEVELOP)          ## run all tests; those that need a rehearsal are skipped where none can run
	@$(REHEARSAL) build
	@.venv/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder
	@test -e $(TRAIN) || echo "skipped: real training with torch; make train-real installs it (3.8 GB) and trains"

train-real: $(TRAIN)      ## install torch for the CPU, train the samples of workloads/ and kill them on the way
	@$(REHEARSAL) build
	@.venv/bin/pytest tests/test_workloads.py tests/worlds/test_training_world.py

lint: $(DEVELOP)          ## check format, style and types
	@.venv/bin/ruff format --check && .venv/bin/ruff check && .venv/bin/pyright

bench: $(DEVELOP)         ## measure speed, old and new side by side
	@.venv/bin/python -m benchmarks

schema: $(PRODUCT)        ## write docs/stack.schema.json and docs/stack-file.md anew
	@.venv/bin/python -m stacks.reports.check --schema > docs/stack.schema.json
	@.venv/bin/python -m stacks.reports.reference > docs/stack-file.md

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
