"""Errors about how the ranks of a job find each other: variables that nobody gives, and a torchrun whose nodes wait at
another place or for another number.

Sources: Kubeflow Trainer at v2.1.0 and v2.3.0, training-operator v1.8.1, torch's distributed/elastic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainyard.catalog.job_kinds import job_kind
from trainyard.derive.job_view import V1_ENV, ContainerView, JobView
from trainyard.derive.scripts import LAUNCHER_ENV, Launch, launches
from trainyard.problems import InputError
from trainyard.rules.scripts import has_shell

Problems = Iterator[InputError]
BACKEND, ENDPOINT = "--rdzv_backend=c10d", "--rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT}"
MASTER = "--master_addr=${PET_MASTER_ADDR}"
MEETS_BY = re.compile(r"--(?:rdzv|master|main|machine|node|nnodes)[\w-]*[= ]\S+")
"""Options by which ranks find each other."""


def unknown_variable(view: JobView, container: ContainerView) -> Problems:
    """A variable that nobody gives: kubelet leaves $(NAME) as it is, a shell puts nothing."""
    if container.more_env is None:
        return
    text = container.script
    by_kubelet = re.findall(r"(?<!\$)\$\((?!JAX_|DMLC_)([A-Z][A-Z0-9_]*)\)", text)
    by_shell = re.findall(r"\$[{(]?([A-Z][A-Z0-9_]*)\b(?!:?[-=+?])", text)
    asked = {*(by_kubelet if view.runtime_known else ()), *filter(LAUNCHER_ENV.match, by_shell)}
    names = [
        name
        for name in sorted(asked - {*container.env, *container.more_env})
        if not re.search(rf"\b{name}=|\b(?:read|for) {name}\b", text)
    ]
    meeting = " ".join(MEETS_BY.findall(text))
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


OF_TRAINER = {
    "MASTER_ADDR": "PET_MASTER_ADDR",
    "MASTER_PORT": "PET_MASTER_PORT",
    "NNODES": "PET_NNODES",
    "NODE_RANK": "PET_NODE_RANK",
    "RANK": "PET_NODE_RANK",
}
"""Variable that other launchers set for a container → that of the Trainer with the same value."""


def _given_ranks(view: JobView, container: ContainerView, given: Sequence[str]) -> str:
    """Fix: how ranks find each other by what the controller gives, and by nothing that it does not. `given`: variables
    of the script that it does not give."""
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
    """A torchrun whose nodes do not meet: each waits at another place, or for another number."""
    for launch in launches(container.script):
        for problem in (_no_endpoint, _other_nodes, _one_rank_for_all):
            yield from problem(view, container, launch)


def _no_endpoint(view: JobView, container: ContainerView, launch: Launch) -> Problems:
    if view.nodes < 2 or not launch.is_standalone or (view.elastic and not launch.endpoint):
        return
    written = re.search(r"--standalone|--(?:rdzv[_-]endpoint|master[_-]addr)[= ]\S+", launch.text)
    endpoint = ENDPOINT
    if written and written[0].startswith("--master"):
        endpoint = MASTER
    elif not re.search("--rdzv[_-]backend", launch.text):
        endpoint = f"{BACKEND} {ENDPOINT}"
    endpoint = endpoint_for(view, container, endpoint)
    yield container.where("script").must(
        "give torchrun a rendezvous endpoint that all nodes reach: without one each node"
        " waits at its own localhost",
        got=written[0] if launch.endpoint and written else launch.text[:60],
        fix=f"put {endpoint} in the place of {written[0]}"
        if written
        else f"add {endpoint} right behind torchrun",
    )


def endpoint_for(view: JobView, container: ContainerView, endpoint: str = ENDPOINT) -> str:
    """The option as the container takes it: where no shell starts, Kubernetes puts the values in."""
    if view.origin == "entry" and has_shell(container):
        return endpoint
    return endpoint.replace("{", "(").replace("}", ")")


def _other_nodes(view: JobView, container: ContainerView, launch: Launch) -> Problems:
    if view.nodes and launch.nodes.isdecimal() and int(launch.nodes) != view.nodes:
        place = container.where("option.nnodes")
        of_runtime = place.path.endswith(".runtime")
        yield place.must(
            f"start the job's {view.nodes} nodes",
            got=f"--nnodes={launch.nodes}{' in the command of the runtime' * of_runtime}",
            fix=f"put --nnodes=$(PET_NNODES) in its place{' there' * of_runtime}, or leave it out: torchrun reads"
            " PET_NNODES",
        )


def _one_rank_for_all(view: JobView, container: ContainerView, launch: Launch) -> Problems:
    own = container.node_rank is not None and launch.rank == str(container.node_rank)
    if view.nodes > 1 and launch.rank.isdecimal() and not own:
        yield container.where("option.node_rank").must(
            "give every node a rank of its own",
            got=f"--node_rank={launch.rank}",
            fix="put --node_rank=$(PET_NODE_RANK) in its place, or leave it out: torchrun reads PET_NODE_RANK",
        )
