"""Nodes of a job that do not meet: a value that a script assigns is judged like one behind its option."""

from __future__ import annotations

import pytest

from tests.support.cases.jobs import pytorch_job
from tests.support.stackfile import at, planned
from tests.trainyard.rules.test_jobs import JOB, SCRIPT, of_entry, of_file
from trainyard.problems import InputError

HOME, NODES = "a rendezvous endpoint that all nodes reach", "start the job's 2 nodes"
RANK, OWN = "give every node a rank of its own", "have one value in all 2 pods"
C10D = "torchrun --nnodes 2 --rdzv_backend c10d --rdzv_endpoint $PET_MASTER_ADDR:29500"
STATIC = "torchrun --nnodes 2 --node_rank $PET_NODE_RANK --master_addr $PET_MASTER_ADDR"
MEGATRON = """\
GPUS_PER_NODE=8
MASTER_ADDR=localhost
MASTER_PORT=6000
NUM_NODES=1
NODE_RANK=0
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES # of Slurm
    --master_addr "$MASTER_ADDR"
    --master_port $MASTER_PORT
)
echo "MASTER_ADDR=$MASTER_ADDR"
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py
"""
REFUSED = {
    "Megatron's example": (MEGATRON, {HOME, NODES}),
    "its options in one text": (
        'NUM_NODES=1\nA="--nnodes $NUM_NODES \\\n --master_addr localhost"\ntorchrun $A t.py',
        {HOME, NODES},
    ),
    "an array in an array": (
        'A=(--nnodes 1)\nB=(${A[@]} --max_restarts 3)\ntorchrun "${B[@]}" t.py',
        {NODES},
    ),
    "variables that are exported": (
        "export MASTER_ADDR=localhost NNODES=1\nexport NODE_RANK=0\n"
        "torchrun --nnodes $NNODES --node_rank ${NODE_RANK} --master_addr $MASTER_ADDR t.py",
        {HOME, NODES, RANK},
    ),
    "behind cd": ("cd /app && NNODES=1 && torchrun --nnodes=$NNODES t.py", {NODES}),
    "a random id": (f"{C10D} --rdzv_id $RANDOM t.py", {OWN}),
    "a random id without a backend": (f"{STATIC} --rdzv_id=$RANDOM t.py", {OWN}),
    "the second of a start": (f"JOB_ID=$(date +%s)\n{C10D} --rdzv_id $JOB_ID t.py", {OWN}),
    "a date with the time": (f"{C10D} --rdzv-id=run_$(date +%Y%m%d_%H%M%S) t.py", {OWN}),
    "an id of Slurm, or a random one": (
        f"{C10D} --rdzv_id=${{SLURM_JOB_ID:-$RANDOM}} t.py",
        {OWN},
    ),
    "the name of a pod as id": (f"{C10D} --rdzv_id $HOSTNAME t.py", {OWN}),
    "a random port": (f"{STATIC} --master_port $((29500 + RANDOM % 1000)) t.py", {OWN}),
    "a random port of an endpoint": (
        "torchrun --rdzv_backend c10d --rdzv_endpoint=$PET_MASTER_ADDR:$(shuf -i 2000-3000 -n 1) t",
        {OWN},
    ),
    "its own address": (
        "export MASTER_ADDR=$(hostname -i)\n"
        "torchrun --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:29500 t.py",
        {HOME},
    ),
    "the first of its own addresses": (
        "M=$(hostname -I | awk '{print $1}')\ntorchrun --master_addr=$M t.py",
        {HOME},
    ),
    "its own name": ("torchrun --master_addr=$(hostname) t.py", {HOME}),
    "its own address in quotes": (
        'torchrun --rdzv_backend=c10d --rdzv_endpoint="$POD_IP:1" t.py',
        {HOME},
    ),
}
SOUND = {
    "nodes of the Trainer": "NNODES=$PET_NNODES\ntorchrun --nnodes $NNODES t.py",
    "an address of the Trainer": (
        "MASTER_ADDR=$PET_MASTER_ADDR\ntorchrun --master_addr=$MASTER_ADDR t.py"
    ),
    "an address that a condition chooses": (
        "MASTER_ADDR=localhost\nif [ $PET_NNODES -gt 1 ]; then MASTER_ADDR=$PET_MASTER_ADDR; fi\n"
        "torchrun --master_addr $MASTER_ADDR t.py"
    ),
    "an address that a test chooses": (
        "[ $PET_NNODES -gt 1 ] || MASTER_ADDR=localhost\ntorchrun --master_addr $MASTER_ADDR t.py"
    ),
    "an address that is written anew": (
        "MASTER_ADDR=localhost\nMASTER_ADDR=$PET_MASTER_ADDR\ntorchrun --master_addr $MASTER_ADDR t.py"
    ),
    "an address of another file": (
        "MASTER_ADDR=localhost; source nodes.sh; torchrun --master_addr $MASTER_ADDR t.py"
    ),
    "an address that is read": (
        "MASTER_ADDR=localhost\nread MASTER_ADDR < /f\ntorchrun --master_addr $MASTER_ADDR t.py"
    ),
    "an array that grows": (
        "A=(--nnodes 1)\nA+=(--nnodes 2)\ntorchrun --rdzv_backend=c10d ${A[@]} t.py"
    ),
    "nodes of a command before": "NNODES=1 python prepare.py; torchrun --nnodes $NNODES t.py",
    "the day as id": f"{C10D} --rdzv_id=run-$(date +%Y-%m-%d) t.py",
    "an id that is one of all pods": f"{C10D} --rdzv_id=$PET_MASTER_ADDR t.py",
    "an id of the job, without the number of its pod": f"{C10D} --rdzv_id=${{HOSTNAME%-*}} t.py",
    "the first pod by the name of each": (
        "torchrun --master_addr=$(hostname | sed 's/-[0-9]*$/-0/') t.py"
    ),
    "the first pod by a part of a name": "torchrun --master_addr=${HOSTNAME%-*}-0.svc t.py",
    "random numbers of one seed": f"RANDOM=7\n{C10D} --rdzv_id $RANDOM t.py",
    "a random port that nobody reads": f"{C10D} --master_port $RANDOM t.py",
    "a random number for the program": f"{C10D} t.py --seed $RANDOM --rdzv_id $RANDOM",
}
RULES = (HOME, NODES, RANK, OWN)


@pytest.mark.parametrize("case", REFUSED)
def test_a_value_with_which_nodes_do_not_meet_is_refused_also_in_a_variable(case: str) -> None:
    script, rules = REFUSED[case]
    for said in (of_entry(script), of_file(script)):
        found = [rule for rule in RULES for words in said if rule in words]
        assert sorted(found) == sorted(rules), said
    for said in (of_entry(script, nodes=1), of_file(script, nodes=1)):
        assert not [words for words in said if HOME in words or OWN in words]


@pytest.mark.parametrize("case", SOUND)
def test_a_value_that_may_be_the_same_in_all_pods_is_not_refused(case: str) -> None:
    for said in (of_entry(SOUND[case]), of_file(SOUND[case])):
        assert not [words for words in said for rule in RULES if rule in words]


TRAIN = "torchrun train.py\n"
ON_ONE = (
    'if [ "$PET_NODE_RANK" = 0 ]; then torchrun --standalone --nnodes=1 eval.py; fi',
    "if [[ $PET_NODE_RANK == 0 ]]; then torchrun --nnodes=1 --master_addr=localhost --node_rank=0 t.py; fi",
    '[ "$PET_NODE_RANK" = 0 ] && deepspeed --num_gpus 8 warm.py',
    "case $PET_NODE_RANK in 0) accelerate launch --num_machines 1 --machine_rank 0 t.py;; esac",
    '[ "$PET_NODE_RANK" = 0 ] || exit 0\ntorchrun --standalone eval.py',
    "if [ $PET_NODE_RANK = 0 ]; then torchrun --node_rank=0 --master_addr=localhost t.py\n"
    "else torchrun --node_rank=1 --master_addr=$PET_MASTER_ADDR t.py; fi",
    'if [ "$PET_NODE_RANK" = 0 ]; then torchrun $MORE t.py; fi',
)
WAITS = "start one node where it stands"


@pytest.mark.parametrize("script", ON_ONE)
def test_a_start_on_one_node_needs_no_other_node(script: str) -> None:
    rules = (*RULES, WAITS, "reach the other pods", "machines meet", "endpoint")
    for said in (of_entry(TRAIN + script), of_file(TRAIN + script)):
        assert not [words for words in said for rule in rules if rule in words]


def test_a_torchrun_on_one_node_that_waits_for_the_others_is_refused() -> None:
    script = f"{TRAIN}if [ $PET_NODE_RANK = 0 ]; then torchrun --nproc_per_node=1 convert.py; fi\n"
    for said in (of_entry(script), of_file(script)):
        assert len([words for words in said if WAITS in words]) == 1
    assert not [words for words in of_entry(script, nodes=1) if WAITS in words]
    [error] = planned(at(SCRIPT, script), at(f"{JOB}.nodes", 2)).errors
    assert error.fix == (
        "add --nnodes=1 --master_addr=localhost --node_rank=0 right behind torchrun"
    )


def _errors(script: str, **env: str) -> list[InputError]:
    made = planned(at(SCRIPT, script), at(f"{JOB}.nodes", 2), at(f"{JOB}.env", env))
    return [error for error in made.errors if any(rule in error.must for rule in RULES)]


def test_an_error_about_a_variable_names_its_value_and_the_option_to_replace() -> None:
    home, nodes = _errors(MEGATRON)
    assert home.got == "--master_addr $MASTER_ADDR, which is localhost"
    assert (
        home.fix
        == "put --master_addr=${PET_MASTER_ADDR} in the place of --master_addr $MASTER_ADDR"
    )
    assert nodes.got == "--nnodes $NUM_NODES, which is 1"
    [own] = _errors(f"JOB_ID=$(date +%s)\n{C10D} --rdzv_id $JOB_ID t.py")
    assert own.got == "--rdzv_id $JOB_ID, which is $(date +%s)"
    assert own.fix.startswith("delete --rdzv_id $JOB_ID: torchrun needs none")
    [own] = _errors(f"{STATIC} --master_port $((29500 + RANDOM % 1000)) t.py")
    assert own.fix == (
        "put --master_port=${PET_MASTER_PORT} in the place of --master_port $((29500 + RANDOM % 1000))"
    )


def test_a_random_default_of_a_variable_that_the_job_sets_is_no_error() -> None:
    script = f"JOB_ID=${{ID:-$RANDOM}}\n{C10D} --rdzv_id $JOB_ID t.py"
    assert _errors(script) and not _errors(script, ID="7")


def test_an_entry_of_the_operator_must_not_count_its_ranks_as_nodes() -> None:
    """A PyTorchJob of an entry says how many processes a pod has, so that WORLD_SIZE is that of all."""

    def fixes(script: str, **more: object) -> list[str]:
        edits = [at(f"{JOB}.{name}", value) for name, value in more.items()]
        made = planned(*pytorch_job(), at(SCRIPT, script), at(f"{JOB}.nodes", 2), *edits)
        return [error.fix for error in made.errors if "number of all ranks" in error.must]

    torchrun = "torchrun --nnodes=$WORLD_SIZE --node_rank=$RANK --master_addr=$MASTER_ADDR t.py"
    accelerate = (
        "accelerate launch --num_machines $WORLD_SIZE --num_processes $((WORLD_SIZE*8))"
        " --machine_rank $RANK --main_process_ip $MASTER_ADDR --main_process_port $MASTER_PORT t.py"
    )
    for script in (torchrun, accelerate):
        assert fixes(script) == ["write $PET_NNODES in the place of $WORLD_SIZE"]
        assert fixes(script, processes_per_node=1) == []
        assert fixes(script.replace("$WORLD_SIZE", "$PET_NNODES", 1)) == []
