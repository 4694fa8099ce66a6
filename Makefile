# STACK names a stack file, Pulumi.<stack>.yaml. `make` prints the words below that have a ## comment.
STACK ?= dev
STACK_IS_GIVEN := $(filter command environment,$(firstword $(origin STACK)))
# Each is 1, or is left out. What the environment says of all but LIVE may be about something else.
FLAGS := LIVE POLICY PREVIEW KEY BOUNDARY FOLLOW PAST YES LIST CHARTS ONCE
JUDGED := LIVE $(foreach flag,$(FLAGS),$(if $(filter command,$(firstword $(origin $(flag)))),$(flag)))
# What somebody gives is text: make expands nothing in it, and a shell sees it in quotes.
$(foreach name,STACK FILE TRAINER DEADLINE POLICY PART LIVE JSON PREVIEW KEY BOUNDARY JOB RANK FOLLOW PAST YES POOL NODES IMAGE FROM REGISTRY LIST CHARTS RUN GPUS MINUTES ONCE SVG,$(eval override $(name) := $$(value $(name))))
$(foreach flag,$(JUDGED),$(if $(filter-out 0 1,$($(flag))),$(error $(flag) must be 1, or be left out; got $($(flag)). Fix: write $(flag)=1)))
quoted = '$(subst ','\'',$(1))'
PYTHON ?= python3
PRODUCT := .venv/.product
DEVELOP := .venv/.develop
TRAIN := .venv/.train
REHEARSAL := .venv/bin/python -m development
WORLD := .venv/bin/python -m rehearsal
# LIVE=1 means the stack of that name on an AWS account. Without it a word means the rehearsal.
ON_ACCOUNT := $(filter 1,$(LIVE))
# Words that only the rehearsal has, and what does the same on an account.
INSTEAD_up = pulumi up --stack $(STACK)
INSTEAD_down = make drain LIVE=1 STACK=$(STACK) and pulumi destroy --stack $(STACK) --exclude-protected
INSTEAD_preview = pulumi preview --stack $(STACK)
INSTEAD_env = make kubeconfig LIVE=1 STACK=$(STACK)
$(foreach word,$(if $(ON_ACCOUNT),$(filter up down preview env,$(MAKECMDGOALS))),$(error make $(word) works in the rehearsal only, and LIVE=1 means an AWS account. Fix: $(INSTEAD_$(word)), or leave out LIVE=1))
OF_JOB = $(if $(JOB),--job $(call quoted,$(JOB)))
AGREED = $(if $(filter 1,$(YES)),--yes)
# Without plugins pydantic need not look through all that is installed.
export PYDANTIC_DISABLE_PLUGINS := __all__
NEEDS := $(if $(ON_ACCOUNT),$(PRODUCT),$(DEVELOP))

.DEFAULT_GOAL := help
.PHONY: help check plan due policy dashboards preview migrate schema up status logs stop again image mirror accept spent runs watch shell kubeconfig drain repair env down test worlds lint soak bench train-real

help:                     ## print these words
	@awk -F ':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo; echo "With STACK=<name> a word reads Pulumi.<name>.yaml; without it, Pulumi.dev.yaml."

##@ Before anything is created

check: $(if $(filter 1,$(POLICY)),$(DEVELOP),$(PRODUCT))         ## list all errors of a stack file; POLICY=1 also judges it by the policies; LIVE=1 also reads the AWS account, DEADLINE= seconds at most
	@.venv/bin/python -m trainyard.reports.check $(if $(filter 1,$(LIVE)),--live $(if $(DEADLINE),--deadline $(call quoted,$(DEADLINE)))) $(call quoted,$(STACK))
	$(if $(filter 1,$(POLICY)),@.venv/bin/python -m policy_pack.check $(call quoted,$(STACK)))

plan: $(PRODUCT)          ## print nodes, quota, goodput, time to the first step and cost; JSON=1 for programs
	@.venv/bin/python -m trainyard.reports.plan $(call quoted,$(STACK)) $(if $(JSON),--json)

due: $(PRODUCT)           ## print what is due, until when and what to do; LIVE=1 also asks the AWS account; JSON=1 for programs
	@.venv/bin/python -m trainyard.reports.due $(call quoted,$(STACK)) $(if $(ON_ACCOUNT),--live) $(if $(JSON),--json)

policy: $(PRODUCT)        ## print the IAM policies that deploying needs, PART=<name> alone; PREVIEW=1: that of previews; KEY=1: that of kms_key_arn; BOUNDARY=1: that of permissions_boundary
	@.venv/bin/python -m trainyard.reports.policy $(call quoted,$(STACK)) $(if $(filter 1,$(PREVIEW)),--preview) $(if $(filter 1,$(KEY)),--key) $(if $(filter 1,$(BOUNDARY)),--boundary) $(if $(PART),--part $(call quoted,$(PART)))

dashboards: $(PRODUCT)    ## write the dashboards of a stack with metrics to dashboards/, for Grafana's import
	@.venv/bin/python -m trainyard.reports.dashboards $(call quoted,$(STACK))

preview: $(DEVELOP)       ## print what `make up` would change
	@$(REHEARSAL) preview --stack $(call quoted,$(STACK))

migrate: $(PRODUCT)       ## print a PyTorchJob or TrainJob (FILE=job.yaml) as an entry; STACK=: with its names, TRAINER=: for this release
	@.venv/bin/python -m trainyard.migrate.migrate $(if $(FILE),$(call quoted,$(FILE))) \
	  $(if $(TRAINER),--trainer $(call quoted,$(TRAINER))) $(if $(STACK_IS_GIVEN),--stack $(call quoted,$(STACK)))

schema: $(PRODUCT)        ## write the JSON schema and the reference of stack files, in docs/
	@.venv/bin/python -m trainyard.reports.check --schema > docs/stack.schema.json
	@.venv/bin/python -m trainyard.reports.reference > docs/stack-file.md

##@ In the rehearsal, without an AWS account

up: $(DEVELOP)            ## create the stack and wait until its jobs have finished; run it again after a failure
	@$(REHEARSAL) up --stack $(call quoted,$(STACK))

env: $(DEVELOP)           ## print exports for pulumi, kubectl, helm and aws: eval "$(make env)"
	@$(REHEARSAL) env --stack $(call quoted,$(STACK))

down: $(DEVELOP)          ## delete all stacks and end the rehearsal; with STACK=<name> delete that stack only
	@$(REHEARSAL) down $(if $(STACK_IS_GIVEN),--stack $(call quoted,$(STACK)))

##@ In the rehearsal; with LIVE=1 on your AWS account, where STACK is the Pulumi stack

status: $(NEEDS)          ## print nodes and jobs, and what keeps a job from running
	@$(if $(ON_ACCOUNT),.venv/bin/python -m trainyard.operations.status.status --live --stack $(call quoted,$(STACK)),$(REHEARSAL) status --stack $(call quoted,$(STACK)))

logs: $(NEEDS)            ## print the whole logs of all ranks of JOB=<job>; RANK=<node> of one node, FOLLOW=1 until it ends, PAST=1 of pods that are gone
	@$(if $(ON_ACCOUNT),.venv/bin/python -m trainyard.operations.runs.logs --live $(call quoted,$(STACK)),$(REHEARSAL) logs --stack $(call quoted,$(STACK))) $(OF_JOB) \
	  $(if $(RANK),--rank $(call quoted,$(RANK))) $(if $(filter 1,$(FOLLOW)),--follow) $(if $(filter 1,$(PAST)),--past)

stop: $(NEEDS)            ## name the run of JOB=<job>, ask, end it, and print how to begin again; YES=1 for programs
	@$(if $(ON_ACCOUNT),.venv/bin/python -m trainyard.operations.runs.stop --live $(call quoted,$(STACK)),$(REHEARSAL) stop --stack $(call quoted,$(STACK))) $(OF_JOB) $(AGREED)

again: $(PRODUCT)         ## increase the run number of JOB=<job> in the stack file, after a question; YES=1 for programs
	@.venv/bin/python -m trainyard.operations.runs.again $(if $(ON_ACCOUNT),--live) $(call quoted,$(STACK)) $(OF_JOB) $(AGREED)

image: $(NEEDS)           ## build FROM=<folder with a Dockerfile>, push it to ECR, write its digest into JOB=<job>; REGISTRY=, YES=1
	@$(if $(ON_ACCOUNT),.venv/bin/python -m trainyard.operations.images.image --live $(call quoted,$(STACK)),$(REHEARSAL) image --stack $(call quoted,$(STACK))) $(AGREED) \
	  $(OF_JOB) $(if $(FROM),--from $(call quoted,$(FROM))) $(if $(REGISTRY),--registry $(call quoted,$(REGISTRY)))

mirror: $(NEEDS)          ## list the images that nodes pull, copy those that artifacts.images lacks; LIST=1 lists only, CHARTS=1: charts instead, JSON=1, YES=1
	@$(if $(ON_ACCOUNT)$(filter 1,$(LIST) $(CHARTS)),.venv/bin/python -m trainyard.operations.images.mirror $(if $(ON_ACCOUNT),--live) $(call quoted,$(STACK)),$(REHEARSAL) mirror --stack $(call quoted,$(STACK))) $(AGREED) \
	  $(if $(filter 1,$(LIST)),--list) $(if $(filter 1,$(CHARTS)),--charts) $(if $(JSON),--json)

accept: $(NEEDS)          ## judge what the nodes of POOL=<pool> reach, by line; without such a job: its price, a question, its entry
	@$(if $(ON_ACCOUNT),.venv/bin/python -m trainyard.operations.nodes.accept --live $(call quoted,$(STACK)),$(REHEARSAL) accept --stack $(call quoted,$(STACK))) $(AGREED) \
	  $(if $(POOL),--pool $(call quoted,$(POOL))) $(if $(NODES),--nodes $(call quoted,$(NODES))) $(if $(IMAGE),--image $(call quoted,$(IMAGE))) $(if $(JSON),--json)

spent: $(NEEDS)           ## print GPU hours and dollars of each finished run, and of each team; JSON=1 for programs
	@$(if $(ON_ACCOUNT),.venv/bin/python -m trainyard.operations.runs.spent --live $(call quoted,$(STACK)),$(REHEARSAL) spent --stack $(call quoted,$(STACK))) $(if $(JSON),--json)

runs: $(NEEDS)            ## print each run: who, what, when, how long, dollars, outcome; JSON=1 for programs
	@$(if $(ON_ACCOUNT),.venv/bin/python -m trainyard.operations.runs.history --live $(call quoted,$(STACK)),$(REHEARSAL) runs --stack $(call quoted,$(STACK))) $(if $(JSON),--json)

watch: $(NEEDS)           ## show nodes, runs with their ranks, queue, dollars and alerts until ctrl-C; ONCE=1 prints one frame, SVG=<file> draws it
	@$(if $(ON_ACCOUNT),.venv/bin/python -m trainyard.operations.runs.watch --live $(call quoted,$(STACK)),$(REHEARSAL) watch --stack $(call quoted,$(STACK))) \
	  $(if $(filter 1,$(ONCE)),--once) $(if $(JSON),--json) $(if $(SVG),--svg $(call quoted,$(SVG)))

shell: $(NEEDS)           ## open a terminal on a node of POOL=<pool>, or RUN=<command>; its price and a question first; IMAGE=, GPUS=, MINUTES=, YES=1
	@$(if $(ON_ACCOUNT),.venv/bin/python -m trainyard.operations.nodes.shell --live $(call quoted,$(STACK)),$(REHEARSAL) shell --stack $(call quoted,$(STACK))) $(AGREED) \
	  $(if $(POOL),--pool $(call quoted,$(POOL))) $(if $(IMAGE),--image $(call quoted,$(IMAGE))) $(if $(GPUS),--gpus $(call quoted,$(GPUS))) \
	  $(if $(MINUTES),--minutes $(call quoted,$(MINUTES))) $(if $(RUN),--run $(call quoted,$(RUN)))

kubeconfig: $(NEEDS)      ## write a kubeconfig, and print its path
	@$(if $(ON_ACCOUNT),.venv/bin/python -m trainyard.operations.reach.kubeconfig --live $(call quoted,$(STACK)),$(REHEARSAL) kubeconfig --stack $(call quoted,$(STACK)))

drain: $(NEEDS)           ## list the training jobs on the cluster, ask, and delete them
	@$(if $(ON_ACCOUNT),.venv/bin/python -m trainyard.operations.recovery.drain --live $(call quoted,$(STACK)),$(REHEARSAL) drain --stack $(call quoted,$(STACK)))

repair: $(NEEDS)          ## after a killed or failed update: list what must be mended, ask, and do it
	@$(if $(ON_ACCOUNT),.venv/bin/python -m trainyard.operations.recovery.repair --live $(call quoted,$(STACK)),$(REHEARSAL) repair --stack $(call quoted,$(STACK)))

##@ For contributors

test: $(DEVELOP)          ## run the tests; tests that need a rehearsal are skipped where the machine cannot run one
	@$(WORLD) build
	@.venv/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder
	@test -e $(TRAIN) || echo "skipped: real training with torch; make train-real installs torch (3.8 GB) and trains"

worlds: $(DEVELOP)        ## run the tests of jobs, of capacity, of access to the cluster and of Kueue, each in a rehearsal of its own
	@$(WORLD) build --also kueue --also kueue-0.19
	@.venv/bin/pytest -n 2 --dist loadfile -m "apart and not soak"

lint: $(DEVELOP)          ## check format, style and types
	@.venv/bin/ruff format --check && .venv/bin/ruff check && .venv/bin/pyright

soak: $(DEVELOP)          ## run long tests: every known misconfiguration, 40 things left out, a kill at every operation of AWS, and 24 random process kills, 4 of them on a busy machine
	@.venv/bin/pytest -m soak
	@for word in up down; do for when in before after; do \
	  .venv/bin/python -m tests.worlds.crawl --alone --word $$word --when $$when || exit 1; done; done
	@.venv/bin/python -m tests.worlds.crawl --alone --every 3
	@.venv/bin/python -m tests.worlds.soak
	@.venv/bin/python -m tests.worlds.soak --no-leave-outs --kills 4 --busy 6

bench: $(DEVELOP)         ## measure time and memory
	@.venv/bin/python -m benchmarks

train-real: $(TRAIN)      ## install torch for the CPU (3.8 GB) and train the samples of workloads/
	@$(WORLD) build
	@.venv/bin/pytest tests/test_workloads.py tests/test_measure.py tests/worlds/test_training_world.py

$(PRODUCT): requirements.txt
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(DEVELOP): requirements/develop.txt requirements/policy.txt
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/policy.txt
	@touch $(PRODUCT) $@

$(TRAIN): requirements/train.txt $(DEVELOP)
	@.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@
