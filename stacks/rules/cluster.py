"""Which clusters cannot work: Kubernetes version, admins, system nodes, Trainer and
training-operator. The endpoint: endpoint.py."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from catalog import versions
from catalog.instances import GPU_TYPES
from plans.upstream_runtimes import upstream_runtimes
from stacks.rules.endpoint import endpoint_errors
from stacks.rules.entries import torchtune_errors
from stacks.settings.environment import (
    EnvironmentConfig,
    OwnRuntimeConfig,
    SystemNodesConfig,
)
from stacks.settings.problems import REMOVE, InputError
from stacks.settings.yaml_file import as_yaml


def cluster_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    cluster, known = wanted.cluster, [*versions.KUBERNETES]
    if cluster.version not in known:
        yield InputError(
            path="environment.cluster.version",
            must="be a Kubernetes version whose add-ons this program knows",
            got=cluster.version,
            fix=f"write {' or '.join(map(as_yaml, known))}, or add a row to catalog/versions.py",
            write=known[-1],
        )
    yield from endpoint_errors(cluster)
    roles = [admin.role_arn for admin in cluster.admins.values()]
    for role in sorted({role for role in roles if roles.count(role) > 1}):
        second = [name for name, admin in cluster.admins.items() if admin.role_arn == role][1]
        yield InputError(
            path=f"environment.cluster.admins.{second}",
            must="be another role than the other admins: EKS has one access entry for each role",
            got=role,
            fix="delete it",
            write=REMOVE,
        )


def trainer_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    trainer, known = wanted.trainer, [*versions.TRAINERS]
    if trainer.version not in known:
        near = [version for version in known if version.startswith(f"{trainer.version}.")]
        yield InputError(
            path="environment.trainer.version",
            must="be a Kubeflow Trainer release that this program supports",
            got=trainer.version,
            fix=f"write {' or '.join(near or known)}",
            write=(near or known)[0],
        )
        return
    shipped = upstream_runtimes(trainer.version)
    for name in trainer.runtimes:
        if name not in shipped:
            rest = [other for other in trainer.runtimes if other in shipped]
            near = difflib.get_close_matches(name, shipped, n=1)
            yield InputError(
                path="environment.trainer.runtimes",
                must=f"list runtimes of Trainer {trainer.version}",
                got=name,
                fix=(f"write {near[0]}" if near else f"write some of {', '.join(shipped)}")
                + "; describe a runtime of your own under own_runtimes",
                write=list(dict.fromkeys([*rest, *near])),
            )
    for name, own in trainer.own_runtimes.items():
        yield from _own_runtime(name, own, wanted, name in shipped)


def _own_runtime(
    name: str, own: OwnRuntimeConfig, wanted: EnvironmentConfig, is_upstream: bool
) -> Iterator[InputError]:
    """`is_upstream`: whether the Trainer ships a runtime of that name."""
    path = f"environment.trainer.own_runtimes.{name}"
    if own.priority and own.priority not in wanted.priorities:
        listed = ", ".join(wanted.priorities)
        add = f"add {own.priority}: 1000 under environment.priorities"
        yield InputError(
            path=f"{path}.priority",
            must="be one of environment.priorities",
            got=own.priority,
            fix=f"write one of {listed}, or {add}" if listed else f"delete it, or {add}",
            write=next(iter(wanted.priorities), REMOVE),
        )
    yield from torchtune_errors(path, own, wanted)
    if is_upstream:
        yield InputError(
            path=path,
            must="not have the name of a runtime that the Trainer ships",
            got=name,
            fix=f"rename it to {name}-own",
        )


def training_operator_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    operator, known = wanted.training_operator, versions.TRAINING_OPERATORS
    if operator and operator.version not in known:
        yield InputError(
            path="environment.training_operator.version",
            must="be a release that this program has a chart of",
            got=operator.version,
            fix=f"write {' or '.join(known)}",
            write=known[-1],
        )


def system_node_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    kind, usual = wanted.system_nodes.instance_type, SystemNodesConfig().instance_type
    family, _, size = kind.partition(".")
    if kind in GPU_TYPES:
        must = "have no GPUs: only controllers run there"
    elif re.search(r"\dg", family):
        must = "be x86, as the images of the charts are"
    elif size in ("", "nano", "micro", "small", "medium"):
        must = "have room for the controllers: at least 2 vCPUs and 8 GiB"
    else:
        return
    yield InputError(
        path="environment.system_nodes.instance_type",
        must=must,
        got=kind,
        fix=f"write {usual}",
        write=usual,
    )
