"""Rules of training jobs: each speaks for an entry of a stack file and for a YAML file alike."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.support.cases.jobs import JOB
from tests.support.stackfile import at, planned, without
from trainyard.derive.job_view import JobView
from trainyard.manifests.context import contexts_of, live_view
from trainyard.manifests.document import read_manifest
from trainyard.problems import InputError
from trainyard.rules import entries
from trainyard.rules.jobs import WHY_RANKS_DO_NOT_MEET, Problems, job_problems

SCRIPT = f"{JOB}.script"
ENTRY = f"environment.{JOB}"


def of_entry(script: str, nodes: int = 2, **env: str) -> list[str]:
    """What is said about an entry with this script: without its path."""
    made = planned(at(SCRIPT, script), at(f"{JOB}.nodes", nodes), at(f"{JOB}.env", env))
    return [_words(problem) for problem in (*made.errors, *made.warnings)]


def of_file(script: str, nodes: int = 2, **env: str) -> list[str]:
    """The same about a TrainJob in a file."""
    trainer = {
        "numNodes": nodes,
        "image": "a/b:1",
        "command": ["bash", "-c", script],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}},
    }
    job: dict[str, Any] = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "a"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer},
    }
    workloads, _ = read_manifest(yaml.safe_dump(job), "job.yaml")
    return [_words(problem) for problem in job_problems(contexts_of(workloads)[0].view)]


def _words(problem: Any) -> str:
    return problem.must if isinstance(problem, InputError) else problem.text


def test_a_port_that_torchrun_sets_itself_is_said_to_be_idle() -> None:
    """The remedy that people try when ranks do not meet."""
    meet = "torchrun --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint={} t.py"
    ours = meet.format("${PET_MASTER_ADDR}:${PET_MASTER_PORT}")
    uses = meet.format("${PET_MASTER_ADDR}:${MASTER_PORT}")
    for judged in (of_entry, of_file):

        def idle(script: str, judged: Any = judged, **env: str) -> bool:
            return any("reaches no process" in each for each in judged(script, **env))

        assert idle(ours, MASTER_PORT="29501") and not idle(ours)
        assert not idle(uses, MASTER_PORT="29501")
        assert not idle("python t.py", MASTER_PORT="29501")


ACCELERATE = "accelerate launch --num_machines 2 --machine_rank $PET_NODE_RANK --main_process_ip $PET_MASTER_ADDR"
PROBES = {
    "a rank that nobody sets": (
        "torchrun --nnodes=2 --node_rank=${RANK:-0} t.py",
        "not go on with a default where",
    ),
    "a script that YAML folded into a comment": ("# train\n", "run something"),
    "a line that YAML folded behind a comment": ("torchrun # go --x train.py", "go on behind a #"),
    "fewer GPUs than processes": (
        "export CUDA_VISIBLE_DEVICES=0\ntorchrun --nproc_per_node=8 t.py",
        "name a GPU for each of the 8 processes",
    ),
    "nodes of the script's own": (
        "export PET_NNODES=1\ntorchrun t.py",
        "PET_NNODES=1 takes the place of what",
    ),
    "a continued line with a blank": (
        "torchrun \\ \n  train.py",
        "have nothing behind the backslash",
    ),
    "lines that end with CR": ("cd /a\r\ntorchrun t.py", "end its lines with LF"),
    "a script of one long line": ("torchrun " + "x" * 131_072, "be shorter than 131072 bytes"),
    "a file in the place of a program": ("train.py", "start a program"),
    "a quote that does not end": ("echo 'a\ntorchrun t.py", "be a script that bash can read"),
    "a placeholder": ("torchrun <YOUR_SCRIPT>", "not contain a placeholder"),
    "a placeholder with a number": (
        "git clone https://github.com/<GIT_REPO2> -b v1; torchrun t.py",
        "not contain a placeholder",
    ),
    "a placeholder in small letters": (
        "git clone https://github.com/a/<your_repo> -b v1; torchrun t.py",
        "not contain a placeholder",
    ),
    "a placeholder in words": (
        "torchrun t.py --data s3://CHANGE_ME/x",
        "not contain a placeholder",
    ),
    "a clone without a scheme": ("git clone github.com/a/b\ntorchrun t.py", "clone from a URL"),
    "a clone by half a scheme": (
        "git clone -q https:/gitlab.com/a/b\ntorchrun t.py",
        "clone from a URL",
    ),
    "a clone over SSH": (
        "git clone git@github.com:a/b.git\ngit checkout 1a2b3c; torchrun t.py",
        "is cloned over SSH, and the job has no key",
    ),
    "a clone with a token that nobody sets": (
        "git clone https://x:${GH_TOKEN}@github.com/a/b\ntorchrun t.py",
        "the clone logs in with GH_TOKEN, which neither env nor a Secret",
    ),
    "an escaped variable": ("torchrun --nnodes=\\${PET_NNODES} t.py", "not escape a variable"),
    "the number of a process": ("mkdir /tmp/$$\ntorchrun t.py", "makes one $ of $$"),
    "another number of machines": (
        "accelerate launch --num_machines 4 --machine_rank $PET_NODE_RANK --main_process_ip a t.py",
        "start the job's 2 nodes",
    ),
    "DeepSpeed without a list of hosts": (
        "deepspeed --num_gpus 8 --num_nodes 2 t.py",
        "each of the 2 pods trains alone, since deepspeed knows no other host",
    ),
    "DeepSpeed by its path, in an environment of its own": (
        "source a.sh && conda run -n train /opt/conda/bin/deepspeed t.py",
        "each of the 2 pods trains alone, since deepspeed knows no other host",
    ),
    "MPI without a list of hosts": (
        "mpirun -np 16 --allow-run-as-root python t.py",
        "each of the 2 pods trains alone, since mpirun knows no other host",
    ),
    "accelerate whose machines do not meet": (
        "accelerate launch --num_machines 2 --machine_rank $PET_NODE_RANK t.py",
        "say where its machines meet",
    ),
    "accelerate that hands DeepSpeed to pdsh": (
        f"{ACCELERATE} --num_processes 16 --main_process_port 29500 --use_deepspeed --zero_stage 3 t.py",
        "each of the 2 pods trains alone, since accelerate starts DeepSpeed by pdsh, which knows no other host",
    ),
    "accelerate that hands DeepSpeed to pdsh by a file": (
        "cat > /tmp/a.yaml <<EOF\ndistributed_type: DEEPSPEED\nnum_machines: 2\nmachine_rank: $PET_NODE_RANK\n"
        "main_process_ip: $PET_MASTER_ADDR\nEOF\naccelerate launch --config_file /tmp/a.yaml t.py",
        "each of the 2 pods trains alone, since accelerate starts DeepSpeed by pdsh, which knows no other host",
    ),
    "DeepSpeed as a module, with a time limit": (
        "timeout -k 60 3600 python3 -u -m deepspeed.launcher.runner --num_gpus 8 t.py",
        "each of the 2 pods trains alone, since deepspeed knows no other host",
    ),
    "DeepSpeed behind env": (
        "env A=1 B=2 deepspeed t.py",
        "each of the 2 pods trains alone, since deepspeed knows no other host",
    ),
    "DeepSpeed behind numactl": (
        "numactl --interleave=all deepspeed t.py",
        "each of the 2 pods trains alone, since deepspeed knows no other host",
    ),
    "accelerate as a module whose machines do not meet": (
        "python -m accelerate.commands.launch --num_machines 2 t.py",
        "say where its machines meet",
    ),
    "torchtune without an endpoint": (
        "tune run --nproc_per_node 8 full_finetune_distributed --config llama3_1/8B_full",
        "give torchtune a rendezvous endpoint that all nodes reach",
    ),
    "torchtune without an endpoint, with its nodes": (
        "tune run --nnodes 2 --nproc_per_node 8 lora_finetune_distributed --config a.yaml",
        "give torchtune a rendezvous endpoint that all nodes reach",
    ),
    "LLaMA-Factory on several nodes": (
        "llamafactory-cli train /app/sft.yaml",
        "say where the job's 2 nodes meet: llamafactory-cli starts one node",
    ),
    "LLaMA-Factory that lacks a rank": (
        "NNODES=2 MASTER_ADDR=$PET_MASTER_ADDR MASTER_PORT=29500 lmf train /app/sft.yaml",
        "say where the job's 2 nodes meet: lmf starts one node",
    ),
    "Composer on several nodes": (
        "composer -n 8 train.py --save_folder a",
        "say where the job's 2 nodes meet: composer starts one node",
    ),
    "Composer that lacks a rank": (
        "composer --world_size 16 --master_addr $PET_MASTER_ADDR --master_port 29500 train.py",
        "say where the job's 2 nodes meet: composer starts one node",
    ),
    "ms-swift without its processes": (
        "swift sft --model a/b --deepspeed zero3",
        "say where the job's 2 nodes meet: swift starts one node unless it is told NPROC_PER_NODE",
    ),
    "ColossalAI without hosts": (
        "colossalai run --nproc_per_node 8 train.py",
        "each of the 2 pods trains alone, since colossalai knows no other host",
    ),
    "Fabric whose nodes do not meet": (
        "fabric run --num-nodes=2 --node-rank=$PET_NODE_RANK --devices=8 t.py",
        "each of the 2 pods waits at its own address, since fabric knows no other host",
    ),
    "torchtitan's own script": (
        "cd /opt/torchtitan && ./run_train.sh --checkpoint.enable",
        "torchtitan's run_train.sh starts torchrun with --rdzv_endpoint=localhost:0",
    ),
    "Lightning without the other nodes": (
        "fabric run --devices 8 t.py",
        "each of the 2 pods trains alone, since fabric knows no other host",
    ),
    "one machine rank for all": (
        "exec accelerate launch --num_machines=2 --main_process_ip=a --machine_rank=0 t.py",
        "give every node a rank of its own",
    ),
    "another number of nodes for Lightning": (
        "NCCL_DEBUG=WARN python main.py fit --trainer.num_nodes=4 --trainer.devices=8",
        "start the job's 2 nodes",
    ),
    "more processes than GPUs, by DeepSpeed": (
        "deepspeed --hostfile=/h --num_gpus 99 t.py --num_nodes 3",
        "start at most one process for each of the pod's 8 GPUs",
    ),
    "half of the GPUs, by DeepSpeed": (
        "deepspeed --hostfile=/h --num_gpus=4 t.py",
        "--num_gpus 4 leaves 4 of each pod's 8 GPUs idle",
    ),
    "more processes than all GPUs": (
        f"{ACCELERATE} --num_processes 64 t.py",
        "one process for each of the 16 GPUs of 2 pods",
    ),
    "the processes of one node for all": (
        f"{ACCELERATE} --num_processes 8 t.py",
        "--num_processes 8 is the number of all processes, and the 2 pods have 16 GPUs: 8 stay idle",
    ),
    "the processes of all nodes for each, by accelerate": (
        "accelerate launch --num_processes 16 t.py",
        "start at most one process for each of the pod's 8 GPUs",
    ),
    "half of the GPUs, by accelerate": (
        "accelerate launch --num_machines 1 --num_processes 4 t.py",
        "--num_processes 4 leaves 4 of each pod's 8 GPUs idle",
    ),
    "half of the GPUs, by torchrun": (
        "torchrun --nproc_per_node=4 t.py",
        "--nproc_per_node=4: 4 of the 8 GPUs of a pod get a process",
    ),
    "another number of nodes": ("torchrun --nnodes=3 train.py", "start the job's 2 nodes"),
    "one rank for all nodes": ("torchrun --node_rank=0 train.py", "a rank of its own"),
    "a master at home": (
        "torchrun --master_addr=127.0.0.1 t.py",
        "a rendezvous endpoint that all nodes reach",
    ),
    "nodes that wait at themselves": ("torchrun --standalone t.py", "a rendezvous endpoint"),
    "more processes than GPUs": ("torchrun --nproc_per_node=99 t.py", "at most one process"),
    "a variable that nobody sets": ("torchrun --node_rank=$RANK t.py", "use variables that"),
    "a variable that nobody sets, by its own name": (
        "export MASTER_ADDR=$MASTER_ADDR\ntorchrun --master_addr=$MASTER_ADDR t.py",
        "use variables that",
    ),
    "a variable that nobody sets, in arithmetic": (
        "WORLD_SIZE=$((WORLD_SIZE * 8))\ntorchrun t.py",
        "use variables that",
    ),
    "a variable that nobody sets, to be itself": (
        "set -u; export DATA_DIRS=$DATA_DIRS; STEPS=$((STEPS * 8)); torchrun t.py $STEPS",
        "the script uses DATA_DIRS, STEPS, which neither the job",
    ),
    "a directory that ends with its pod": (
        "torchrun t.py --output_dir=/tmp/out",
        "save on shared storage",
    ),
    "a variable of nobody": ("NCCL_NETWORK_TIMEOUT=1 torchrun t.py", "is no variable of NCCL"),
    "a clone of whatever is newest": (
        "git clone https://github.com/a/b\ntorchrun t.py",
        "a clone of whatever is newest",
    ),
    "no launcher": ("python train.py", "starts without torchrun on 2 nodes"),
}


@pytest.mark.parametrize("case", PROBES)
def test_a_script_is_judged_alike_in_an_entry_and_in_a_file(case: str) -> None:
    script, says = PROBES[case]
    entry = [words for words in of_entry(script) if says in words]
    file = [words for words in of_file(script) if says in words]
    assert len(entry) == len(file) == 1, (of_entry(script), of_file(script))
    assert entry == file


def test_a_variable_that_the_trainer_sets_is_refused_in_an_entry_and_in_a_file() -> None:
    for problems in (
        of_entry("torchrun t.py", PET_NNODES="2"),
        of_file("torchrun t.py", PET_NNODES="2"),
    ):
        assert [words for words in problems if "a variable that the Trainer sets" in words]


def test_a_problem_stands_at_the_place_of_its_own_input() -> None:
    [entry] = planned(at(SCRIPT, "torchrun --standalone t.py")).errors
    assert entry.path == f"{ENTRY}.script"
    command = [at(f"{JOB}.command", ["torchrun", "--standalone", "t.py"]), without(SCRIPT)]
    [entry] = planned(*command).errors
    assert entry.path == f"{ENTRY}.command"


@pytest.mark.parametrize(
    "script",
    [
        "torchrun train.py",
        "python -m torch.distributed.run train.py",
        "accelerate launch train.py",
        "RANK=$PET_NODE_RANK WORLD_SIZE=$PET_NNODES python train.py",
        "python prepare.py && torchrun train.py",
        "bash train.sh",
    ],
)
def test_a_script_that_starts_ranks_or_may_do_so_is_not_called_alone(script: str) -> None:
    assert [w for w in (*of_entry(script), *of_file(script)) if "without torchrun" in w] == []


@pytest.mark.parametrize(
    "script",
    [
        "mpirun -np 16 -H $HOSTS python t.py",
        "echo a slots=8 > /job/hostfile; deepspeed --num_gpus 8 t.py",
        "mpirun --hostfile /etc/hosts.txt python t.py",
        "accelerate launch t.py",
        "accelerate launch --use_deepspeed --zero_stage 3 t.py",
        "accelerate launch --config_file ds.yaml --use_deepspeed t.py",
        f"{ACCELERATE} --use_deepspeed --deepspeed_multinode_launcher standard t.py",
        f"{ACCELERATE} --use_deepspeed --deepspeed_multinode_launcher=$BY t.py",
        f"{ACCELERATE} --use_deepspeed --deepspeed_hostfile /job/hosts t.py",
        f"{ACCELERATE} --zero_stage 3 t.py --use_deepspeed",
        "accelerate launch --config_file /app/ds.yaml --num_machines 2 --machine_rank $PET_NODE_RANK t.py",
        "tune run --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint $PET_MASTER_ADDR:29500 a --config b",
        "PET_RDZV_ENDPOINT=$PET_MASTER_ADDR:29500 tune run --nproc_per_node 8 full_finetune_distributed",
        "tune download meta/a --output-dir /a; torchrun t.py",
        "tune run generate --config a.yaml",
        "FORCE_TORCHRUN=1 NNODES=$PET_NNODES NODE_RANK=$PET_NODE_RANK MASTER_ADDR=$PET_MASTER_ADDR"
        " MASTER_PORT=$PET_MASTER_PORT llamafactory-cli train a.yaml",
        "export RDZV_ID=1 NNODES=2 MASTER_ADDR=$PET_MASTER_ADDR MASTER_PORT=29500\nllamafactory-cli train a",
        "USE_RAY=1 llamafactory-cli train a.yaml",
        "source /app/nodes.sh; llamafactory-cli train a.yaml",
        "llamafactory-cli export a.yaml; torchrun t.py",
        "NPROC_PER_NODE=8 swift sft --model a/b",
        "swift sft /app/sft.yaml",
        "export NNODES=$PET_NNODES\nswift rlhf --rlhf_type dpo",
        "swift export --model a; torchrun t.py",
        "WORLD_SIZE=16 composer --node_rank $R --master_addr a --master_port 1 t.py",
        "export WORLD_SIZE=16 BASE_RANK=$R MASTER_ADDR=a MASTER_PORT=1; composer t.py",
        "colossalai run --nproc_per_node 8 --hostfile /h t.py",
        "lightning run model --num-nodes 2 --devices 8 --node-rank $PET_NODE_RANK --main-address a t.py",
        "pip install deepspeed && torchrun t.py --deepspeed ds.json",
    ],
)
def test_a_launcher_that_may_reach_the_other_pods_is_not_called_alone(script: str) -> None:
    said = [*of_entry(script), *of_file(script)]
    assert [
        words
        for words in said
        if re.search("knows no other|machines meet|nodes meet|endpoint", words)
    ] == []


def test_a_launcher_of_one_pod_needs_no_other_host() -> None:
    for script in (
        "deepspeed t.py",
        "mpirun -np 8 python t.py",
        "tune run --nproc_per_node 8 a_distributed --config a",
        "llamafactory-cli train a.yaml",
        "composer t.py",
        "swift sft --model a",
        "cd torchtitan; ./run_train.sh",
    ):
        said = [*of_entry(script, nodes=1), *of_file(script, nodes=1)]
        assert [
            words for words in said if re.search("knows no other|nodes meet|endpoint", words)
        ] == []


def test_what_torchtune_and_llama_factory_lack_is_written_for_a_shell_and_for_none() -> None:
    def fix(*words: str) -> str:
        made = planned(at(f"{JOB}.command", [*words]), at(f"{JOB}.nodes", 2), without(SCRIPT))
        [found] = [
            error.fix for error in made.errors if re.search("nodes meet|nodes reach", error.must)
        ]
        return found

    words = ("tune", "run", "--nproc_per_node", "8", "full_finetune_distributed", "--config", "a")
    endpoint = "--rdzv_backend=c10d --rdzv_endpoint=$(PET_MASTER_ADDR):$(PET_MASTER_PORT)"
    assert fix(*words) == f"add {endpoint} right behind tune run"
    assert "--rdzv_endpoint=${PET_MASTER_ADDR}:" in fix("bash", "-c", " ".join(words))
    variables = "FORCE_TORCHRUN=1 NNODES=$PET_NNODES NODE_RANK=$PET_NODE_RANK"
    found = fix("llamafactory-cli", "train", "a.yaml")
    assert found.startswith(f"put {variables}") and found.endswith(", and start both by bash -c")
    found = fix("bash", "-c", "llamafactory-cli train a.yaml")
    assert found.endswith("MASTER_PORT=$PET_MASTER_PORT before llamafactory-cli train")
    found = fix("bash", "-c", "composer t.py")
    assert found.startswith("put WORLD_SIZE=$((PET_NNODES * 8)) NODE_RANK=$PET_NODE_RANK MASTER_")
    found = fix("bash", "-c", "swift sft --model a")
    assert found == "put NPROC_PER_NODE=8 before swift sft"


def test_what_fabric_lacks_is_added_to_its_options() -> None:
    made = planned(at(SCRIPT, "fabric run --devices 8 t.py"), at(f"{JOB}.nodes", 2))
    [found] = [error.fix for error in made.errors if "knows no other host" in error.must]
    assert found == (
        "add --num-nodes=${PET_NNODES} --node-rank=${PET_NODE_RANK} --main-address=${PET_MASTER_ADDR}"
        " --main-port=${PET_MASTER_PORT} to its options"
    )


def test_a_script_named_like_that_of_torchtitan_is_none() -> None:
    for script in (
        "./run_train.sh",
        "cd torchtitan; sed -i s/localhost:0/$PET_MASTER_ADDR:29500/ run_train.sh; ./run_train.sh",
        "cd torchtitan; torchrun -m torchtitan.train",
    ):
        said = [*of_entry(script), *of_file(script)]
        assert not [words for words in said if "torchtitan's run_train.sh" in words]


def test_tune_run_that_the_trainer_completes_is_no_error() -> None:
    """Of the command `tune run` the Trainer makes a recipe with its endpoint; the arguments are settings of it."""
    made = planned(
        at(f"{JOB}.command", ["tune", "run", "dtype=bf16"]), at(f"{JOB}.nodes", 2), without(SCRIPT)
    )
    assert [str(error) for error in made.errors if "endpoint" in error.must] == []


ONE_GPU = (
    "as it stands each of the 2 pods trains alone: with one process, accelerate starts plain Python"
)


def of_one_gpu(script: str, **env: str) -> list[str]:
    """Errors about an entry whose pods have one GPU each, with their fixes."""
    pool = at("pools.g6e.instance_types", ["g6e.4xlarge"])
    made = planned(pool, at(SCRIPT, script), at(f"{JOB}.nodes", 2), at(f"{JOB}.env", env))
    return [f"{error.must} {error.fix}" for error in made.errors]


def test_accelerate_with_one_process_a_pod_is_told_to_start_ranks() -> None:
    with_machines = f"{ACCELERATE} --main_process_port 29500 --num_processes 2 t.py"
    for script, fix in (
        ("accelerate launch t.py", "and leave --num_processes out"),
        ("accelerate launch --num_processes 1 --mixed_precision bf16 t.py", "leave"),
        (with_machines, "behind accelerate launch, beside --num_processes 2"),
    ):
        [found] = [said for said in of_one_gpu(script) if ONE_GPU in said]
        assert "add --multi_gpu right" in found and fix in found
    for said in (of_entry, of_file):
        script = "accelerate launch --num_processes 1 t.py"
        assert [words for words in said(script) if ONE_GPU in words]
        assert not [words for words in said(script, nodes=1) if ONE_GPU in words]
    [found] = [
        said for said in of_one_gpu("accelerate launch --num_machines 2 t.py") if "meet" in said
    ]
    assert (
        "put --multi_gpu in the place of --num_machines and --num_processes: the nodes are" in found
    )
    assert "--num_processes 2 --multi_gpu --machine_rank" in found


@pytest.mark.parametrize(
    "script",
    [
        "accelerate launch --multi_gpu t.py",
        "accelerate launch --multi-gpu -m t",
        f"{ACCELERATE} --multi_gpu --num_processes 2 t.py",
        "accelerate launch --use_fsdp t.py",
        "accelerate launch --use_deepspeed --zero_stage 3 t.py",
        "accelerate launch --use_megatron_lm t.py",
        "accelerate launch --config_file /app/fsdp.yaml t.py",
        "accelerate launch $ARGS t.py",
        'accelerate launch "${ARGS[@]}" t.py',
        "accelerate config default; accelerate launch t.py",
        "accelerate launch prepare.py; torchrun t.py",
        'if [ "$PET_NODE_RANK" = 0 ]; then accelerate launch eval.py; fi',
        "export LOCAL_RANK=0 RANK=$PET_NODE_RANK WORLD_SIZE=2\naccelerate launch t.py",
    ],
)
def test_accelerate_that_may_start_ranks_with_one_gpu_is_not_refused(script: str) -> None:
    assert [said for said in of_one_gpu(script) if "trains alone" in said] == []


def test_one_node_needs_no_launcher() -> None:
    assert [w for w in of_file("python train.py", nodes=1) if "without torchrun" in w] == []


def test_one_process_on_eight_gpus_is_noted_unless_the_program_starts_more() -> None:
    for said in (of_entry, of_file):
        assert [w for w in said("python train.py", nodes=1) if "1 of the 8 GPUs of a pod" in w]
        for script in ("python train.py --devices 8", "python -m vllm.serve --tp 8", "bash t.sh"):
            assert [w for w in said(script, nodes=1) if "GPUs of a pod" in w] == []


@pytest.mark.parametrize(
    "script",
    [
        "git clone https://github.com/a/b",
        "git clone --depth 1 https://www.github.com/a/b.git /code",
        "git clone /mnt/repositories/b",
        "git clone a/b",
        "GIT_SSH_COMMAND='ssh -i /keys/a' git clone git@github.com:a/b.git",
        "TOKEN=$(cat /run/token); git clone https://x:$TOKEN@github.com/a/b",
        "git config url.https://github.com/.insteadOf git@github.com: && git clone git@github.com:a/b",
        "echo git is cloned from github.com/a/b",
    ],
)
def test_a_clone_that_may_work_is_no_error(script: str) -> None:
    said = [*of_entry(f"{script}\ntorchrun t.py"), *of_file(f"{script}\ntorchrun t.py")]
    assert [words for words in said if re.search("clone[sd]? (from|over|logs)", words)] == []


@pytest.mark.parametrize(
    "script",
    [
        'bash -c "torchrun --nnodes=\\$PET_NNODES t.py"',
        "cat > run.sh <<EOF\ntorchrun --nnodes=\\$PET_NNODES t.py\nEOF\nbash run.sh",
        "echo \\$HOME; torchrun t.py",
        "mkdir /tmp/$BASHPID /tmp/$$$$; torchrun t.py",
        "echo $$(date); torchrun t.py",
        "pip list | grep deepspeed --num_nodes=7; torchrun t.py --deepspeed ds.json --num_nodes 7",
        f"{ACCELERATE} --num_processes 16 t.py",
        "accelerate launch --num_processes 8 t.py",
        "accelerate launch --num_machines 1 --machine_rank 0 --num_processes 8 t.py",
        "accelerate launch --config_file fsdp.yaml --num_processes 8 t.py",
        "deepspeed --hostfile=/h --num_gpus 8 --num_nodes 2 t.py",
        "python main.py fit trainer.num_nodes=2 trainer.devices=8 my_trainer.devices=3",
        "# accelerate launch --num_machines 4 t.py\ntorchrun t.py",
        "torchrun --nproc_per_node=8 t.py --trainer.devices -1",
    ],
)
def test_what_bash_and_launchers_are_told_rightly_passes(script: str) -> None:
    texts = (
        "escape a variable",
        "makes one $",
        "the job's 2 nodes",
        "rank of its own",
        "GPUs of",
        "GPUs idle",
    )
    said = [*of_entry(script), *of_file(script)]
    assert [words for words in said if any(text in words for text in texts)] == []


def test_a_variable_that_needs_a_shell_is_refused_where_none_starts() -> None:
    def said(*words: str) -> list[str]:
        made = planned(at(f"{JOB}.command", [*words]), without(SCRIPT))
        return [error.fix for error in made.errors if "no shell starts" in error.must]

    assert said("torchrun", "--nnodes=${PET_NNODES}", "t.py") == ["write $(PET_NNODES)"]
    assert said("torchrun", "t.py", "--out", "$CHECKPOINT_DIR") == ["write $(CHECKPOINT_DIR)"]
    for word in ("$HF_TOKEN", "--token=${HF_TOKEN}"):
        [fix] = said("torchrun", "t.py", "--token", word)
        assert fix.startswith("write what belongs there, or $(HF_TOKEN) and HF_TOKEN under env or")
    assert said("torchrun", "t.py", "dir=${HYDRA_KEY}", "--nnodes=$(PET_NNODES)") == []
    assert said("/app/start.sh", "$CHECKPOINT_DIR") == []
    assert said("sh", "-c", "torchrun t.py --out $CHECKPOINT_DIR") == []


def test_an_efa_variable_needs_an_efa_device() -> None:
    text = "FI_EFA_FORK_SAFE is for EFA, and the pods ask for no vpc.amazonaws.com/efa"
    assert [w for w in of_file("torchrun t.py", FI_EFA_FORK_SAFE="1") if text in w]
    assert [w for w in of_file("export FI_EFA_FORK_SAFE=1; torchrun t.py") if text in w]
    assert [w for w in of_file("torchrun t.py", nodes=1, FI_EFA_FORK_SAFE="1") if text in w] == []
    assert [w for w in of_entry("torchrun t.py", FI_EFA_FORK_SAFE="1") if text in w] == []
    without_efa = planned(
        at("pools.g6e.instance_types", ["g6.4xlarge"]), at(f"{JOB}.env", {"FI_PROVIDER": "efa"})
    )
    [warning] = [w for w in without_efa.warnings if "is for EFA" in w.text]
    assert warning.path == f"{ENTRY}.env.FI_PROVIDER"


def test_with_mpi_the_launcher_knows_the_ranks() -> None:
    mpi = [
        at("trainer.own_runtimes.torch-distributed-resilient.kind", "mpi"),
        at(SCRIPT, "mpirun bash -c 'echo $RANK; python t5.py'"),
    ]
    assert [str(error) for error in planned(*mpi).errors if "variables" in error.must] == []


def test_the_same_rules_speak_for_an_object_of_a_cluster() -> None:
    runtime = {
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "ours"},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}},
    }
    for script, says in (PROBES["nodes that wait at themselves"], PROBES["no launcher"]):
        job = {
            "kind": "TrainJob",
            "metadata": {"name": "a", "namespace": "training"},
            "spec": {
                "runtimeRef": {"name": "ours"},
                "trainer": {"numNodes": 2, "command": ["bash", "-c", script]},
            },
        }
        view = live_view(job, [runtime])
        problems = [
            p for c in view.containers for rule in WHY_RANKS_DO_NOT_MEET for p in rule(view, c)
        ]
        assert [words for words in map(_words, problems) if says in words]
        assert {problem.where for problem in problems} == {"spec.trainer.command"}


def test_json_of_a_file_is_judged_as_its_yaml() -> None:
    """JSON is YAML: a file that a program wrote has lines, too."""
    job = {"kind": "TrainJob", "metadata": {"name": "a"}, "spec": {"trainer": {"image": "<x>"}}}
    workloads, errors = read_manifest(json.dumps(job, indent=1), "job.json")
    places = [problem.where for problem in job_problems(contexts_of(workloads)[0].view)]
    assert errors == () and "spec.trainer.image [job.json:8]" in places


def test_an_entry_is_judged_once_for_its_errors_and_warnings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[JobView] = []

    def judge(view: JobView) -> Problems:
        seen.append(view)
        yield view.where("nodes").must("be odd", got="2", fix="write 3")
        yield view.where("nodes").warning("an even number")

    monkeypatch.setattr(entries, "job_problems", judge)
    found = planned()
    assert "be odd" in str(found.errors) and "an even number" in str(found.warnings)
    assert len(seen) == 1


def test_a_runtime_with_a_pool_that_is_not_there_blames_no_job() -> None:
    wrong = at("trainer.own_runtimes.torch-distributed-resilient.pool", "h101")
    [error] = planned(wrong).errors
    assert error.path == "environment.trainer.own_runtimes.torch-distributed-resilient.pool"


MEMORY = {"name": "shm", "emptyDir": {"medium": "Memory"}}


@pytest.mark.parametrize(
    ("type_", "gpus", "pod", "mounts", "says"),
    [
        ("g6e.48xlarge", 8, {}, [], True),
        ("g5.12xlarge", 4, {}, [], True),
        ("g6e.48xlarge", 2, {}, [], False),
        ("p5.48xlarge", 8, {}, [], False),
        ("g6e.48xlarge", 8, {"hostIPC": True}, [], False),
        ("g6e.48xlarge", 8, {"volumes": [MEMORY]}, ["/dev/shm"], False),
        (
            "g6e.48xlarge",
            8,
            {"volumes": [{"name": "shm", "hostPath": {"path": "/dev/shm"}}]},
            ["/dev/shm/"],
            False,
        ),
        ("g6e.48xlarge", 8, {"volumes": [MEMORY]}, ["/cache"], True),
    ],
    ids=str,
)
def test_a_file_without_shared_memory_is_a_warning_where_its_gpus_exchange_data_through_it(
    type_: str, gpus: int, pod: dict[str, Any], mounts: list[str], says: bool
) -> None:
    container = {
        "name": "pytorch",
        "image": "a/b:1",
        "command": ["torchrun", "t.py"],
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
        "volumeMounts": [{"name": "shm", "mountPath": path} for path in mounts],
    }
    spec = {"nodeSelector": {"node.kubernetes.io/instance-type": type_}, "containers": [container]}
    master = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": spec | pod}}
    kind = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "a"}}
    job = {**kind, "spec": {"pytorchReplicaSpecs": {"Master": master}}}
    workloads, _ = read_manifest(yaml.safe_dump(job), "job.yaml")
    found = [str(each) for each in job_problems(contexts_of(workloads)[0].view)]
    small = [each for each in found if "no volume is mounted at /dev/shm" in each]
    assert len(small) == says and all(f"the GPUs of a {type_}" in each for each in small)
