"""Errors about accelerate, deepspeed, Lightning and mpirun whose nodes and processes differ from
the pods of the job. torchrun itself: jobs.py."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.launchers import ACCELERATE, MPI, OtherLaunch, other_launches
from trainyard.problems import InputError, InputWarning

Problems = Iterator[InputError | InputWarning]


def other_launchers(view: JobView, container: ContainerView) -> Problems:
    """Every error of a launcher that is not torchrun. An elastic job has no number of nodes."""
    for launch in other_launches(container.script):
        if _is_alone(view, container, launch):
            yield _alone(view, container, launch)
            continue
        for problem in (_nodes, _rank, _per_node, _total):
            yield from () if view.elastic else problem(view, container, launch)


HOSTS_ENV = {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE"}
"""Variables that name a list of hosts to mpirun."""


def _is_alone(view: JobView, container: ContainerView, launch: OtherLaunch) -> bool:
    """True where every pod starts a launcher that reaches no other pod. A script that speaks of a list of hosts may
    write one."""
    if not view.starts_own_ranks or view.nodes < 2 or not launch.names.hosts:
        return False
    has_hosts = HOSTS_ENV & {*container.env} or re.search("(?i)host_?file", container.script)
    return not has_hosts and not re.search(launch.names.hosts, launch.text)


def _alone(view: JobView, container: ContainerView, launch: OtherLaunch) -> InputError:
    if launch.names is ACCELERATE:
        machines = launch.number(launch.names.nodes)
        start = f"start the job's {view.nodes} nodes, and " if machines != view.nodes else ""
        return container.where("script").must(
            f"{start}say where its machines meet and which one each pod is: accelerate takes both from options alone",
            got=launch.text[:60],
            fix="delete --num_machines, and the nodes are those of the job, and --num_processes is that of a pod; or"
            f" write --num_machines {view.nodes} --num_processes {view.nodes * view.gpus} --machine_rank $PET_NODE_RANK"
            " --main_process_ip $PET_MASTER_ADDR --main_process_port $PET_MASTER_PORT",
        )
    name = launch.text.split()[0]
    by_mpi = "; or make it a TrainJob with a runtime of kind: mpi" if name in MPI else ""
    return container.where("script").must(
        f"start ranks that reach the other pods: as it stands each of the {view.nodes} pods trains alone, since {name}"
        " knows no other host",
        got=launch.text[:60],
        fix=f"put torchrun in the place of {name} and its options: it finds the other pods by itself{by_mpi}",
    )


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
