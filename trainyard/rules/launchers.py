"""Errors about accelerate, deepspeed, Lightning and mpirun whose nodes and processes differ from
the pods of the job. torchrun itself: jobs.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from trainyard.derive.branches import asks_for_a_rank
from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.launchers import (
    ACCELERATE,
    MPI,
    OF_ACCELERATE,
    TRAINER,
    TUNE,
    OtherLaunch,
    other_launches,
)
from trainyard.derive.scripts import launches, single_program
from trainyard.derive.shell import READS_MORE
from trainyard.problems import InputError, InputWarning
from trainyard.rules.rendezvous import BACKEND, endpoint_for, ranks_for_nodes
from trainyard.rules.scripts import has_shell

Problems = Iterator[InputError | InputWarning]
Alone = Callable[[JobView, ContainerView, OtherLaunch], InputError | None]


def other_launchers(view: JobView, container: ContainerView) -> Problems:
    """Every error of a launcher that is not torchrun. An elastic job has no number of nodes, and of one that some
    nodes start nobody knows which ranks it is to reach."""
    yield from _of_torchtitan(view, container)
    for launch in other_launches(container.script):
        if asks_for_a_rank(launch.conditions):
            yield from _per_node(view, container, launch)
            continue
        if problem := _alone(view, container, launch):
            yield problem
            continue
        for rule in (_nodes, _rank, _per_node, _total, _without_node_rank):
            yield from () if view.elastic else rule(view, container, launch)


HOSTS_ENV = {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE"}
"""Variables that name a list of hosts to mpirun."""


STANDARD = "--deepspeed_multinode_launcher standard"
"""Option by which accelerate starts DeepSpeed by torchrun."""

RANKS = "--multi_gpu"
"""Option by which accelerate starts ranks by torchrun, whatever their number."""
MORE_THAN_PYTHON = re.compile(
    r"--(?:multi[_-]gpu|use[_-](?:fsdp|deepspeed|megatron[_-]lm|cpu)|config[_-]file|cpu|tpu)\b"
)
"""Options with which accelerate starts more than plain Python, or may do so."""
HIDDEN = re.compile(r"(?<=[ \t])[\"']?\$\{?\w*(?:ARG|OPT|FLAG|PARAM|CONF|CMD)|[@*]")
"""A variable of the shell in which options may hide."""
OWN_RANKS = re.compile(
    r"\bLOCAL_RANK=|default_config|accelerate[ -]config|(?:\[|\btest\b|\bcase\b|\(\()[^\n]*RANK"
)
"""A script that gives ranks itself, writes what accelerate goes by, or lets only one node start it."""


def _alone(view: JobView, container: ContainerView, launch: OtherLaunch) -> InputError | None:
    """The error of a launcher that every pod starts, and that reaches no other pod."""
    if not view.starts_own_ranks or view.nodes < 2:
        return None
    rules: Sequence[Alone] = (_without_hosts,)
    if launch.names in OF_ACCELERATE:
        rules = (_without_meeting, _by_pdsh, _in_plain_python)
    elif launch.names is TUNE:
        rules = (_without_endpoint,)
    elif launch.names.variables:
        rules = (_without_variables,)
    return next(filter(None, (rule(view, container, launch) for rule in rules)), None)


def _has_hosts(container: ContainerView) -> bool:
    """True of a script that speaks of a list of hosts: it may write one."""
    return bool(HOSTS_ENV & {*container.env} or re.search("(?i)host_?file", container.script))


def _without_hosts(
    view: JobView, container: ContainerView, launch: OtherLaunch
) -> InputError | None:
    hosts = launch.names.hosts
    if not hosts or _has_hosts(container) or re.search(hosts, launch.text):
        return None
    name, told = launch.launcher.split()[0], launch.names.told
    waits = told and launch.said.get(launch.names.nodes, "1") != "1"
    by_mpi = "; or make it a TrainJob with a runtime of kind: mpi" if name in MPI else ""
    return container.where("script").must(
        f"start ranks that reach the other pods: as it stands each of the {view.nodes} pods"
        f" {'waits at its own address' if waits else 'trains alone'}, since {name} knows no other host",
        got=launch.text[:60],
        fix=f"add {endpoint_for(view, container, told)} to its options"
        if told
        else f"put torchrun in the place of {name} and its options: it finds the other pods by itself{by_mpi}",
    )


def _without_endpoint(
    view: JobView, container: ContainerView, launch: OtherLaunch
) -> InputError | None:
    """torchtune, whose torchrun is --standalone where nobody names an endpoint, and then waits for the other nodes at
    home. Of the words `tune run` and settings alone the Trainer makes a recipe with its endpoint (Trainer 2.1 and 2.3,
    plugins/torch/torch.go). Other recipes than those that train may run on each node."""
    by_trainer = container.words[:2] == ("tune", "run") and "=" in "".join(container.words[2:3])
    given = "PET_RDZV_ENDPOINT" in container.env or "PET_RDZV_ENDPOINT" in container.script
    trains = re.search(r"--nproc|--nnodes|_distributed\b|_single_device\b", launch.text)
    if by_trainer or given or view.elastic or not trains or _is_open(container, launch):
        return None
    if re.search(launch.names.hosts, launch.text):
        return None
    return container.where("script").must(
        "give torchtune a rendezvous endpoint that all nodes reach: without one each node waits at its own localhost",
        got=launch.text[:60],
        fix=f"add {BACKEND} {endpoint_for(view, container)} right behind tune run",
    )


def _is_open(container: ContainerView, launch: OtherLaunch) -> bool:
    """True where options or variables may come from elsewhere."""
    return bool(READS_MORE.search(container.script) or HIDDEN.search(launch.text))


ANOTHER_WAY = ("USE_RAY", "USE_KT", "USE_V1")
"""Variables by which LLaMA-Factory starts no torchrun, or another way."""


def _without_variables(
    view: JobView, container: ContainerView, launch: OtherLaunch
) -> InputError | None:
    """LLaMA-Factory, Composer and ms-swift, which start one node unless variables say otherwise."""
    names, text = launch.names, launch.text
    known = {*container.env, *(container.more_env or ())}
    known |= {*re.findall(r"\b([A-Z_]+)=", container.script)}
    known |= {option.upper().replace("-", "_") for option in launch.options}
    needed = {*names.variables} - {names.instead[name] for name in known & {*names.instead}}
    if needed <= known or known & {*ANOTHER_WAY} or container.more_env is None:
        return None
    if _is_open(container, launch) or (names.hosts and re.search(names.hosts, text)):
        return None
    ranks = launch.number(names.per_node) or view.gpus or 1
    return container.where("script").must(
        f"say where the job's {view.nodes} nodes meet: {launch.launcher.split()[0]} starts one node unless it is told"
        f" {', '.join(names.variables)}, so each pod trains alone or waits at home",
        got=text[:60],
        fix=f"put {names.told.format(ranks=ranks)} before {launch.launcher}"
        f"{'' if has_shell(container) else ', and start both by bash -c'}",
    )


def _without_meeting(
    view: JobView, container: ContainerView, launch: OtherLaunch
) -> InputError | None:
    """accelerate with several machines. A file of its configuration may say where they meet."""
    hosts = launch.names.hosts
    in_file = "config-file" in launch.options or _has_hosts(container)
    if not hosts or in_file or re.search(hosts, launch.text):
        return None
    machines = launch.number(launch.names.nodes)
    start = f"start the job's {view.nodes} nodes, and " if machines != view.nodes else ""
    by_torchrun = f" {STANDARD}" if "use-deepspeed" in launch.options else ""
    ranks = ""
    away = "delete --num_machines, and the nodes are those of the job, and --num_processes is that of a pod"
    if view.gpus == 1 and not MORE_THAN_PYTHON.search(launch.text):
        ranks = f" {RANKS}"
        away = f"put {RANKS} in the place of --num_machines and --num_processes: the nodes are those of the job"
    return container.where("script").must(
        f"{start}say where its machines meet and which one each pod is: accelerate takes both from options alone",
        got=launch.text[:60],
        fix=f"{away}; or write --num_machines {view.nodes} --num_processes {view.nodes * view.gpus}{ranks}"
        " --machine_rank $PET_NODE_RANK --main_process_ip $PET_MASTER_ADDR --main_process_port $PET_MASTER_PORT"
        f"{by_torchrun}",
    )


def _by_pdsh(view: JobView, container: ContainerView, launch: OtherLaunch) -> InputError | None:
    """DeepSpeed on several machines of accelerate, which starts `deepspeed` on each of them unless it is told
    otherwise; deepspeed without a file of hosts takes its own node (accelerate 1.15, utils/launch.py,
    prepare_deepspeed_cmd_env; DeepSpeed 0.16, launcher/runner.py, fetch_hostfile). --zero_stage and the like
    have no effect without --use_deepspeed."""
    script = container.script
    said = re.search(r"deepspeed[_-]multinode[_-]launcher\b[=: \t]*[\"']?(?:standard|\$)", script)
    if said or _has_hosts(container) or not _is_deepspeed_of_machines(launch, script):
        return None
    in_file = "config-file" in launch.options
    return container.where("script").must(
        f"start ranks that reach the other pods: as it stands each of the {view.nodes} pods trains alone, since"
        " accelerate starts DeepSpeed by pdsh, which knows no other host",
        got=launch.text[:60],
        fix="put `deepspeed_multinode_launcher: standard` below deepspeed_config: torchrun then starts the ranks"
        if in_file
        else f"add {STANDARD} right behind accelerate launch: torchrun then starts the ranks",
    )


def _is_deepspeed_of_machines(launch: OtherLaunch, script: str) -> bool:
    """True where accelerate starts DeepSpeed on several machines: by its options, or by a file that the script
    writes. Of another file nobody knows."""
    in_file = "config-file" in launch.options
    machines = launch.said.get(ACCELERATE.nodes, "")
    if in_file and not machines:
        found = re.search(r"(?m)^[ \t]*num_machines:[ \t]*(\S+)", script)
        machines = found[1] if found else ""
    by_deepspeed = (
        re.search(r"(?m)^[ \t]*distributed_type:[ \t]*[\"']?DEEPSPEED", script)
        if in_file
        else "use-deepspeed" in launch.options
    )
    return bool(by_deepspeed) and machines not in ("", "1")


def _in_plain_python(
    view: JobView, container: ContainerView, launch: OtherLaunch
) -> InputError | None:
    """accelerate with one process a pod. It starts ranks by itself only where a pod has several GPUs and processes;
    else it starts plain Python, also with several machines, and without LOCAL_RANK a program is not distributed
    (accelerate 1.15, commands/launch.py, _validate_launch_command and launch_command; state.py, _prepare_backend)."""
    nodes, said = launch.number(ACCELERATE.nodes) or 1, launch.number(ACCELERATE.total)
    is_one = view.gpus == 1 or (view.gpus and said == 1)
    script = container.script
    told = MORE_THAN_PYTHON.search(launch.text) or HIDDEN.search(launch.text)
    if not is_one or told or OWN_RANKS.search(script):
        return None
    others = len([*other_launches(script), *launches(script)]) > 1
    if others or "LOCAL_RANK" in container.env or _has_hosts(container):
        return None
    processes = (
        f"beside --num_processes {nodes}"
        if nodes > 1
        else "and leave --num_processes out, with which accelerate refuses it"
    )
    return container.where("script").must(
        f"start ranks that reach the other pods: as it stands each of the {view.nodes} pods trains alone: with one"
        " process, accelerate starts plain Python",
        got=launch.text[:60],
        fix=f"add {RANKS} right behind accelerate launch, {processes}",
    )


def _nodes(view: JobView, container: ContainerView, launch: OtherLaunch) -> Problems:
    option = launch.names.nodes
    nodes, written = launch.number(option), launch.said.get(option, "")
    yield from ranks_for_nodes(view, container, f"{option} {written}", written)
    if view.nodes and nodes is not None and nodes != view.nodes:
        yield container.where("script").must(
            f"start the job's {view.nodes} nodes",
            got=f"{option} {nodes}",
            fix=f"write {option} {view.nodes}, or"
            f" {'raise' if nodes > view.nodes else 'lower'} the nodes of the job to {nodes}",
        )


def _rank(view: JobView, container: ContainerView, launch: OtherLaunch) -> Problems:
    """Each pod runs the same script, so a number is the rank of all."""
    option = launch.names.rank
    rank = launch.number(option)
    if view.nodes > 1 and rank is not None and rank != container.node_rank:
        yield container.where("script").must(
            "give every node a rank of its own",
            got=f"{option} {rank}",
            fix=f"write {option} $PET_NODE_RANK",
        )


def _per_node(view: JobView, container: ContainerView, launch: OtherLaunch) -> Problems:
    option = launch.names.per_node
    count, glue = launch.number(option), " " if option.startswith("-") else "="
    if not view.gpus or count is None:
        return
    if count > view.gpus:
        yield container.where("script").must(
            f"start at most one process for each of the pod's {view.gpus} GPUs",
            got=f"{option}{glue}{count}",
            fix=f"write {option}{glue}{view.gpus}",
        )
    elif 0 < count < view.gpus:
        yield container.where("script").warning(
            f"{option} {count} leaves {view.gpus - count} of each pod's {view.gpus} GPUs idle; write"
            f" {option} {view.gpus}, or ask for fewer GPUs"
        )


def _total(view: JobView, container: ContainerView, launch: OtherLaunch) -> Problems:
    """The processes of all nodes. mpirun can be told to start more than there are slots."""
    option = launch.names.total
    count, room = launch.number(option), view.nodes * view.gpus
    if not room or not count or re.search("oversubscribe", container.script):
        return
    if count > room:
        yield container.where("script").must(
            f"start at most one process for each of the {room} GPUs of {view.nodes} pods",
            got=f"{option} {count}",
            fix=f"write {option} {room}",
        )
    elif count < room:
        yield container.where("script").warning(
            f"{option} {count} is the number of all processes, and the {view.nodes} pods have"
            f" {room} GPUs: {room - count} stay idle"
        )


def _without_node_rank(view: JobView, container: ContainerView, launch: OtherLaunch) -> Problems:
    """Lightning that starts its ranks itself. It takes the number of its node from NODE_RANK or GROUP_RANK, and the
    operator sets RANK (lightning 2.5, fabric/plugins/environments/lightning.py; training-operator v1.8.1,
    pkg/controller.v1/pytorch/envvar.go)."""
    several = view.nodes > 1 and (launch.number(TRAINER.nodes) or 1) > 1
    is_own_start = launch.names is TRAINER and single_program(container.script)
    known = {*container.env, *(container.more_env or ())}
    told = {"NODE_RANK", "GROUP_RANK"} & known or re.search("(?:NODE|GROUP)_RANK", container.script)
    if several and is_own_start and "RANK" in (container.more_env or ()) and not told:
        yield container.where("script").warning(
            f"{view.controller} sets no NODE_RANK, by which Lightning knows its node, so each of the {view.nodes} pods"
            " is node 0; write torchrun in the place of python, or NODE_RANK=$RANK before it in bash"
        )


def _of_torchtitan(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """The script with which torchtitan comes: its torchrun reads PET_NNODES, and waits for the others at localhost
    (torchtitan 0.2, run_train.sh). A copy may say something else."""
    script = container.script
    values = (container.image, script, *container.env, *filter(None, container.env.values()))
    starts = re.search(r"(?:^|[\s;&|/])run_train\.sh(?:\s|$)", script)
    is_open = "COMM_MODE" in container.env or re.search(r"COMM_MODE|\bsed\b|rdzv", script)
    several = view.nodes > 1 and view.starts_own_ranks
    if several and starts and "torchtitan" in " ".join(values) and not is_open:
        yield container.where("script").warning(
            "torchtitan's run_train.sh starts torchrun with --rdzv_endpoint=localhost:0, at which each of the"
            f" {view.nodes} nodes waits for the others; write in its place torchrun -m torchtitan.train and its options"
        )
