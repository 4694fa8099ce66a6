"""Errors about how the ranks of a job find each other: variables that nobody gives, and a torchrun whose nodes wait at
another place or for another number.

Sources: Kubeflow Trainer at v2.1.0 and v2.3.0, training-operator v1.8.1, torch's distributed/elastic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainyard.catalog.job_kinds import job_kind
from trainyard.derive.branches import asks_for_a_rank, is_one_node
from trainyard.derive.job_view import V1_ENV, ContainerView, JobView
from trainyard.derive.policies import OTHERS
from trainyard.derive.scripts import LAUNCHER_ENV, OF_EACH_POD, Launch, launches
from trainyard.derive.variables import in_arithmetic, is_assigned
from trainyard.problems import InputError
from trainyard.rules.scripts import has_shell

Problems = Iterator[InputError]
BACKEND, ENDPOINT = "--rdzv_backend=c10d", "--rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT}"
MASTER = "--master_addr=${PET_MASTER_ADDR}"
MEETS_BY = re.compile(r"--(?:rdzv|master|main|machine|node|nnodes)[\w-]*[= ]\S+")
"""Options by which ranks find each other."""
ENDPOINTS = ("rdzv-endpoint", "master-addr")


def unknown_variable(view: JobView, container: ContainerView) -> Problems:
    """A variable that nobody gives: kubelet leaves $(NAME) as it is, a shell puts nothing. With MPI the ranks have
    more than is known here, and no PET_*."""
    is_torchrun = container.where("script").path.endswith(".torchrun")
    if view.policy in OTHERS and is_torchrun:
        return  # refused as a whole: runtimes.py
    names = [each for each in _unknown(view, container) if not view.mpi or each.startswith("PET_")]
    meeting = " ".join(MEETS_BY.findall(container.script))
    own = [
        name
        for name in names
        if not LAUNCHER_ENV.match(name) and name not in V1_ENV and name not in meeting
    ]
    if given := [name for name in names if name not in own]:
        yield container.where("script").must(
            f"use variables that {view.controller} provides",
            got=", ".join(given),
            fix=_given_ranks(view, container, given),
        )
    if own:
        yield container.where("script").must(
            f"use variables that the container has: kubelet leaves $({own[0]}) as it is",
            got=", ".join(own),
            fix=f"add {own[0]} to env",
        )


def _unknown(view: JobView, container: ContainerView) -> list[str]:
    """Variables that the script uses and that neither it nor anybody else sets."""
    if container.more_env is None and not view.mpi:
        return []
    text = container.script
    by_kubelet = re.findall(r"(?<!\$)\$\((?!JAX_|DMLC_)([A-Z][A-Z0-9_]*)\)", text)
    by_shell = re.findall(r"\$[{(]?([A-Z][A-Z0-9_]*)\b(?!:?[-=+?])", text)
    by_shell += in_arithmetic(text)
    asked = {*(by_kubelet if view.runtime_known else ()), *filter(LAUNCHER_ENV.match, by_shell)}
    return [
        name
        for name in sorted(asked - {*container.env, *container.by_us, *(container.more_env or ())})
        if not is_assigned(name, text) and not re.search(rf"\b(?:read|for) {name}\b", text)
    ]


OF_TRAINER = {
    "MASTER_ADDR": "PET_MASTER_ADDR",
    "MASTER_PORT": "PET_MASTER_PORT",
    "NNODES": "PET_NNODES",
    "NODE_RANK": "PET_NODE_RANK",
    "RANK": "PET_NODE_RANK",
}
"""Variable that other launchers set for a container → that of the Trainer with the same value."""


OF_RANKS = {"mpi": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE in the ranks that mpirun starts")}
"""Policy whose ranks have other variables than its pods → those."""


def _given_ranks(view: JobView, container: ContainerView, given: Sequence[str]) -> str:
    """Fix: how ranks find each other by what the controller gives, and by nothing that it does not. `given`: variables
    of the script that it does not give."""
    if view.policy in OTHERS:
        return f"use {', '.join(OF_RANKS.get(view.policy, OTHERS[view.policy]))}, or use a torch runtime"
    proposed = job_kind(view.kind).rank_variables
    there = {*re.findall(r"[A-Z_]{4,}", proposed)}
    if there <= {*container.env, *(container.more_env or ())}:
        meant = {name: OF_TRAINER.get(name) for name in given}
        if re.search(r"--nnodes[= ]\$[{(]?WORLD_SIZE", container.script):
            meant |= {"WORLD_SIZE": "PET_NNODES"}
        if {*meant.values()} <= there:
            return f"use {', '.join(f'{new} in place of {old}' for old, new in meant.items())}"
        return f"use {proposed}"
    if view.elastic:
        return (
            "leave --rdzv_endpoint, --master_addr and --node_rank out: with elasticPolicy the operator"
            " sets PET_RDZV_ENDPOINT"
        )
    return "add a Master, with which the operator sets RANK, WORLD_SIZE and MASTER_ADDR"


def no_meeting(view: JobView, container: ContainerView) -> Problems:
    """A torchrun whose nodes do not meet: each waits at another place, or for another number. Of one that some nodes
    start nobody knows whom it is to meet."""
    for launch in launches(container.script):
        if asks_for_a_rank(launch.conditions):
            yield from _others_of_one_node(view, container, launch)
            continue
        for problem in (_no_endpoint, _other_nodes, _one_rank_for_all, _value_of_each_pod):
            yield from problem(view, container, launch)


ONE_NODE = "--nnodes=1 --master_addr=localhost --node_rank=0"
"""Options with which torchrun starts one node, whatever PET_* variables there are."""


def _others_of_one_node(view: JobView, container: ContainerView, launch: Launch) -> Problems:
    """A torchrun on one node, beside that of all nodes and with none on the others: without --nnodes it reads
    PET_NNODES, and waits for the others (torch 2.9, distributed/run.py and argparse_util.py)."""
    conditions = {each.conditions for each in launches(container.script)}
    asking = {*filter(asks_for_a_rank, conditions)}
    is_beside = asking == {launch.conditions} != conditions
    is_alone = {"nnodes", "standalone"} & launch.options or launch.has_shell_variables
    waits = view.nodes > 1 and view.starts_own_ranks
    if waits and is_beside and is_one_node(launch.conditions) and not is_alone:
        yield container.where("script").must(
            f"start one node where it stands, since one node runs it: torchrun reads PET_NNODES, which is {view.nodes},"
            " and waits for the others",
            got=launch.text[:60],
            fix=f"add {ONE_NODE} right behind torchrun",
        )


def _no_endpoint(view: JobView, container: ContainerView, launch: Launch) -> Problems:
    if view.nodes < 2 or not launch.is_standalone or (view.elastic and not launch.endpoint):
        return
    options = [name for name in ("standalone", *ENDPOINTS) if name in launch.written]
    endpoint = ENDPOINT
    if options == ["master-addr"]:
        endpoint = MASTER
    elif "rdzv-backend" not in launch.written:
        endpoint = f"{BACKEND} {ENDPOINT}"
    endpoint = endpoint_for(view, container, endpoint)
    yield container.where("script").must(
        "give torchrun a rendezvous endpoint that all nodes reach: without one each node"
        " waits at its own address",
        got=_got(launch, options[0]) if launch.endpoint and options else launch.text[:60],
        fix=f"put {endpoint} in the place of {launch.written[options[0]]}"
        if options
        else f"add {endpoint} right behind torchrun",
    )


def _got(launch: Launch, option: str) -> str:
    """An option as the script has it, with the value that its variables have."""
    written, value = launch.written[option], launch.said[option]
    return written if value in written.replace('"', "") else f"{written}, which is {value}"


def endpoint_for(view: JobView, container: ContainerView, endpoint: str = ENDPOINT) -> str:
    """The option as the container takes it: where no shell starts, Kubernetes puts the values in."""
    if view.origin == "entry" and has_shell(container):
        return endpoint
    return endpoint.replace("{", "(").replace("}", ")")


_RANKS = re.compile(r"(?:\d+:)?\$(?:WORLD_SIZE|[{(]WORLD_SIZE(?::?-[^}]*)?[})])")


def ranks_for_nodes(
    view: JobView, container: ContainerView, option: str, value: str
) -> Iterator[InputError]:
    """WORLD_SIZE as the number of nodes. The operator makes it that of all ranks where nprocPerNode is a number
    (training-operator v1.8.1, pkg/controller.v1/pytorch/envvar.go)."""
    is_given = "WORLD_SIZE" in (container.more_env or ()) and (view.ranks or 1) > 1
    assigns = re.search(r"\bWORLD_SIZE=", container.script)
    if is_given and _RANKS.fullmatch(value.strip("\"'")) and not assigns:
        written = "$(PET_NNODES)" if "(" in value else "$PET_NNODES"
        yield container.where("script").must(
            f"not take WORLD_SIZE for the number of nodes: {view.controller} sets it to the number of all ranks,"
            f" {view.nodes * (view.ranks or 1)}, and torchrun waits for as many nodes",
            got=option,
            fix=f"write {written} in the place of {value}",
        )


def _other_nodes(view: JobView, container: ContainerView, launch: Launch) -> Problems:
    yield from ranks_for_nodes(
        view, container, launch.written.get("nnodes", ""), launch.said.get("nnodes", "")
    )
    if view.nodes and launch.nodes.isdecimal() and int(launch.nodes) != view.nodes:
        place = container.where("option.nnodes")
        of_runtime = place.path.endswith(".runtime")
        yield place.must(
            f"start the job's {view.nodes} nodes",
            got=f"{_got(launch, 'nnodes')}{' in the command of the runtime' * of_runtime}",
            fix=f"put --nnodes=$(PET_NNODES) in its place{' there' * of_runtime}, or leave it out: torchrun reads"
            " PET_NNODES",
        )


def _one_rank_for_all(view: JobView, container: ContainerView, launch: Launch) -> Problems:
    own = container.node_rank is not None and launch.rank == str(container.node_rank)
    if view.nodes > 1 and launch.rank.isdecimal() and not own:
        yield container.where("option.node_rank").must(
            "give every node a rank of its own",
            got=_got(launch, "node-rank"),
            fix="put --node_rank=$(PET_NODE_RANK) in its place, or leave it out: torchrun reads PET_NODE_RANK",
        )


def _value_of_each_pod(view: JobView, container: ContainerView, launch: Launch) -> Problems:
    """An id or a port that each pod makes for itself: nodes meet below the id, whatever the backend, and at the port
    (torch 2.9, distributed/elastic/rendezvous: c10d_rendezvous_backend.py, `_key`; static_tcp_rendezvous.py,
    `PrefixStore`)."""
    if view.nodes < 2 or launch.is_standalone or re.search(r"\bRANDOM=", container.script):
        return
    ours = {"master-port": "--master_port=${PET_MASTER_PORT}", "rdzv-endpoint": ENDPOINT}
    if view.elastic or launch.backend != "static" or "rdzv-endpoint" in launch.said:
        del ours["master-port"]  # torchrun does not read it (torch 2.9, distributed/run.py)
    for option in ("rdzv-id", *ours):
        if option in launch.said and OF_EACH_POD.search(_unset(container, launch.said[option])):
            written = launch.written[option]
            fix = f"delete {written}: torchrun needs none, since only pods of the job meet there"
            if option in ours:
                fix = f"put {endpoint_for(view, container, ours[option])} in the place of {written}"
            yield container.where("script").must(
                f"have one value in all {view.nodes} pods: as it stands each pod has its own, and waits for the others",
                got=_got(launch, option),
                fix=fix,
            )


def _unset(container: ContainerView, value: str) -> str:
    """A value without the defaults of variables that the container has, or may have."""
    known = None if container.more_env is None else {*container.env, *container.more_env}
    return re.sub(
        r"\$\{(\w+):?-(?:[^{}]|\{[^{}]*\})*\}",
        lambda found: "" if known is None or found[1] in known else found[0],
        value,
    )
