# What a checkout needs: set-up, the rehearsal, tests. Everything else is a word of .venv/bin/trainyard.
# STACK names a stack file, Pulumi.<stack>.yaml. `make` prints the words below that have a ## comment.
STACK ?= dev
STACK_IS_GIVEN := $(filter command environment,$(firstword $(origin STACK)))
# make ignores a setting that nothing reads: whoever writes LIVE=1 would get the rehearsal.
UNREAD := $(filter-out STACK JOB SHARD PYTHON,$(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name))))
$(if $(UNREAD),$(error make has no setting $(firstword $(UNREAD)). Fix: leave it out; options of a word: .venv/bin/trainyard <word> --help))
# What somebody gives is text: make expands nothing in it, and a shell sees it in quotes.
$(foreach name,STACK JOB SHARD,$(eval override $(name) := $$(value $(name))))
quoted = '$(subst ','\'',$(1))'
PYTHON ?= python3
PRODUCT := .venv/.product
DEVELOP := .venv/.develop
TRAIN := .venv/.train
REHEARSAL := .venv/bin/python -m development
WORLD := .venv/bin/python -m rehearsal
TOOL := .venv/bin/trainyard
# Without plugins pydantic need not look through all that is installed.
export PYDANTIC_DISABLE_PLUGINS := __all__

.DEFAULT_GOAL := help
.PHONY: help check plan preview schema up status logs watch env down test story worlds lint soak bench torch train-real

help:                     ## print these words
	@awk -F ':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo; echo "With STACK=<name> a word reads Pulumi.<name>.yaml; without it, Pulumi.dev.yaml."
	@echo "All other words, and those on an AWS account: .venv/bin/trainyard --help"

##@ In the rehearsal, without an AWS account

check: $(TOOL)            ## list all errors of a stack file
	@$(TOOL) check --stack $(call quoted,$(STACK))
	@if test -e $(DEVELOP); then $(REHEARSAL) needs --stack $(call quoted,$(STACK)); fi

plan: $(TOOL)             ## print nodes, quota, goodput, time to the first step and cost
	@$(TOOL) plan --stack $(call quoted,$(STACK))

preview: $(DEVELOP)       ## print what `make up` would change
	@$(REHEARSAL) preview --stack $(call quoted,$(STACK))

up: $(DEVELOP) $(TOOL)    ## create the stack and wait until its jobs have finished; run it again after a failure
	@$(REHEARSAL) up --stack $(call quoted,$(STACK))

status: $(DEVELOP) $(TOOL)## print nodes and jobs, and what keeps a job from running
	@$(TOOL) status --rehearsal --stack $(call quoted,$(STACK))

logs: $(DEVELOP) $(TOOL)  ## print the whole logs of all ranks of JOB=<job>
	@$(TOOL) logs --rehearsal --stack $(call quoted,$(STACK)) $(if $(JOB),--job $(call quoted,$(JOB)))

watch: $(DEVELOP) $(TOOL) ## show nodes, runs with their ranks, queue, dollars and alerts until ctrl-C
	@$(TOOL) watch --rehearsal --stack $(call quoted,$(STACK))

env: $(DEVELOP)           ## print exports for pulumi, kubectl, helm and aws: eval "$(make env)"
	@$(REHEARSAL) env --stack $(call quoted,$(STACK))

torch: $(TRAIN)           ## install torch for the CPU (3.8 GB), with which `make up` runs scripts of image trainyard/torch-cpu:1
	@echo "torch is installed: a job with image trainyard/torch-cpu:1 runs its script by make up; one that is Complete begins again with trainyard again <job>"

down: $(DEVELOP)          ## delete all stacks and end the rehearsal; with STACK=<name> that stack and the teams on it
	@$(REHEARSAL) down $(if $(STACK_IS_GIVEN),--stack $(call quoted,$(STACK)))

##@ For contributors

test: $(DEVELOP)          ## run all tests but those in worlds; some are skipped where the machine cannot hold a world
	@$(WORLD) build --also promtool --also amtool --also crane --also pulumi-language-yaml
	@.venv/bin/pytest -n 3 --dist loadfile --no-loadscope-reorder
	@test -e $(TRAIN) || echo "skipped: real training with torch; make train-real installs torch (3.8 GB) and trains"

story: $(DEVELOP)         ## walk the story of the README in a world: up, kills, a team, changes, down
	@$(WORLD) build
	@.venv/bin/pytest -m "apart and not soak" tests/worlds/test_rehearsal.py

worlds: $(DEVELOP)        ## run the tests of jobs, of capacity, of access to the cluster, of Kueue and of the story, each in a rehearsal of its own
	@$(WORLD) build --also kueue --also kueue-0.19 --also prometheus
	@.venv/bin/pytest -n 2 --dist loadfile -m "apart and not soak"

schema: $(TOOL)           ## write the JSON schema and the reference of stack files, in docs/
	@$(TOOL) schema > docs/stack.schema.json
	@$(TOOL) schema --reference > docs/stack-file.md

lint: $(DEVELOP)          ## check format, style and types
	@.venv/bin/ruff format --check && .venv/bin/ruff check && .venv/bin/pyright

soak: $(DEVELOP)          ## run all worlds, a kill at every operation of AWS, kills at random, parts left out, faults for the tests; a part of it: SHARD=3/32
	@.venv/bin/python -m tests.worlds.shards $(call quoted,$(or $(SHARD),1/1))

bench: $(DEVELOP)         ## measure time and memory
	@.venv/bin/python -m benchmarks

train-real: $(TRAIN)      ## install torch for the CPU (3.8 GB) and train the samples of workloads/
	@$(WORLD) build
	@.venv/bin/pytest tests/test_workloads.py tests/test_elastic.py tests/test_measure.py tests/test_whole.py tests/worlds/test_training_world.py

$(PRODUCT): requirements.txt
	@echo "installs the Python packages of $< into .venv" >&2
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(TOOL): $(wildcard trainyard/cli/script.py) | $(PRODUCT)
	@.venv/bin/python -m trainyard.cli.script > $@ && chmod +x $@

# The programs of a world are built while pip installs, which uses one core.
BESIDE :=
up test story: BESIDE := $(PYTHON) -m rehearsal.toolchain
$(DEVELOP): requirements/develop.txt requirements/policy.txt
	@echo "installs the Python packages of $< into .venv" >&2
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@$(BESIDE) .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/policy.txt
	@touch $(PRODUCT) $@

$(TRAIN): requirements/train.txt $(DEVELOP)
	@echo "installs torch for the CPU, 3.8 GB, into .venv" >&2
	@.venv/bin/pip install --progress-bar off --disable-pip-version-check --no-deps --require-hashes -r $< >&2
	@touch $@
