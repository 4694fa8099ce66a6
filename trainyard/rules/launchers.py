"""Errors about accelerate, deepspeed, Lightning and mpirun whose nodes and processes differ from
the pods of the job. torchrun itself: jobs.py."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.launchers import (
    ACCELERATE,
    MPI,
    OF_ACCELERATE,
    OtherLaunch,
    other_launches,
)
from trainyard.problems import InputError, InputWarning

Problems = Iterator[InputError | InputWarning]


def other_launchers(view: JobView, container: ContainerView) -> Problems:
    """Every error of a launcher that is not torchrun. An elastic job has no number of nodes."""
    for launch in other_launches(container.script):
        if problem := _alone(view, container, launch):
            yield problem
            continue
        for rule in (_nodes, _rank, _per_node, _total):
            yield from () if view.elastic else rule(view, container, launch)


HOSTS_ENV = {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE"}
"""Variables that name a list of hosts to mpirun."""


STANDARD = "--deepspeed_multinode_launcher standard"
"""Option by which accelerate starts DeepSpeed by torchrun."""


def _alone(view: JobView, container: ContainerView, launch: OtherLaunch) -> InputError | None:
    """The error of a launcher that every pod starts, and that reaches no other pod."""
    if not view.starts_own_ranks or view.nodes < 2:
        return None
    rules = (_without_meeting, _by_pdsh) if launch.names in OF_ACCELERATE else (_without_hosts,)
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
    name = launch.text.split()[0]
    by_mpi = "; or make it a TrainJob with a runtime of kind: mpi" if name in MPI else ""
    return container.where("script").must(
        f"start ranks that reach the other pods: as it stands each of the {view.nodes} pods trains alone, since {name}"
        " knows no other host",
        got=launch.text[:60],
        fix=f"put torchrun in the place of {name} and its options: it finds the other pods by itself{by_mpi}",
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
    return container.where("script").must(
        f"{start}say where its machines meet and which one each pod is: accelerate takes both from options alone",
        got=launch.text[:60],
        fix="delete --num_machines, and the nodes are those of the job, and --num_processes is that of a pod; or"
        f" write --num_machines {view.nodes} --num_processes {view.nodes * view.gpus} --machine_rank $PET_NODE_RANK"
        f" --main_process_ip $PET_MASTER_ADDR --main_process_port $PET_MASTER_PORT{by_torchrun}",
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


def _nodes(view: JobView, container: ContainerView, launch: OtherLaunch) -> Problems:
    option = launch.names.nodes
    nodes = launch.number(option)
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
