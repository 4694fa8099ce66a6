"""Steps of `trainyard prove`, cheapest first: one table, and the stack file that each of them needs.

A new question about an account is a row here, and a function of the same name in
trainyard/operations/prove/acts.py.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trainyard.catalog.acceptance import MINUTES, MINUTES_OF_STORE
from trainyard.catalog.aws.latencies import LATENCIES

PREFIX = "prove"
"""Beginning of the names of stacks that `trainyard prove` may make and destroy."""
CPU, GPU, HOME, SCRATCH = "cpu", "gpu", "home", "scratch"
"""Names of pools and stores of the steps."""
JOB = f"accept-{GPU}"
"""Name of the job that `trainyard accept` writes for the GPU pool."""
INSTANCE, CPU_INSTANCE = "g6.8xlarge", "m7i.4xlarge"
"""Cheapest types of the catalogue with a GPU and EFA, and without a GPU."""
NODE = ("ec2.instance-boot", "job.image-pull")
"""Rows of LATENCIES of the start of a pod on a new node."""
SLACK = 2.0
"""Times its planned slowest tenth that a step takes at most, by the price that is asked for."""
_POOLS: dict[str, Any] = {CPU: {"instance_types": [CPU_INSTANCE], "max_nodes": 1}}
_EFS: dict[str, Any] = {HOME: {"efs": {}, "data": "delete"}}
_LUSTRE = {SCRATCH: {"lustre": {"capacity_gib": 1200, "deployment": "SCRATCH_2"}, "data": "delete"}}


def _gpu(nodes: int) -> dict[str, Any]:
    return {GPU: {"instance_types": [INSTANCE], "max_nodes": nodes}}


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of the hour."""

    name: str
    does: str
    """Sentence that is printed before it."""
    builds: bool = False
    """It makes resources, which cost money until `destroy`."""
    cleans: bool = False
    """It is done also where a step before it failed."""
    pools: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`pools` of the stack file from this step on; empty: those before it."""
    storage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    keeps_jobs: bool = False
    """The stack file keeps its jobs, which only the last of the steps that build has."""
    rows: tuple[str, ...] = ()
    """Rows of LATENCIES that follow each other in it."""
    minutes: float = 0
    """Minutes that it takes beside them."""

    @property
    def most_minutes(self) -> float:
        """Minutes that it takes at most, by its price."""
        return SLACK * (sum(LATENCIES[row].slow for row in self.rows) / 60 + self.minutes)


STEPS: tuple[Step, ...] = (
    Step(
        name="questions",
        does="asks the account for quotas, offers, AMIs, builds of add-ons, roles and names: reads only",
        pools={**_POOLS, **_gpu(2)},  # the questions are about all that the later steps make
        storage={**_EFS, **_LUSTRE},
    ),
    Step(
        name="small",
        does=f"makes a network, a cluster, one CPU pool and one EFS store, and starts one {CPU_INSTANCE}",
        builds=True,
        pools=_POOLS,
        storage=_EFS,
        rows=(
            *("ec2.vpc", "ec2.subnet", "eks.cluster", "eks.nodegroup", "helm.karpenter"),
            *("eks.addon.aws-efs-csi-driver", *NODE),
        ),
    ),
    Step(
        name="gpu",
        does=f"adds the smallest Lustre and a GPU pool, and starts one {INSTANCE}",
        builds=True,
        pools={**_POOLS, **_gpu(1)},
        storage={**_EFS, **_LUSTRE},
        rows=("fsx.lustre", "eks.addon.aws-fsx-csi-driver", *NODE),
    ),
    Step(
        name="run",
        does=f"runs the acceptance job on two {INSTANCE}, over EFA, with both stores",
        builds=True,
        pools={**_POOLS, **_gpu(2)},
        storage={**_EFS, **_LUSTRE},
        keeps_jobs=True,
        rows=(*NODE, "job.first-step"),
        minutes=MINUTES + 2 * MINUTES_OF_STORE,
    ),
    Step(
        name="destroy",
        does="deletes the stack with all of its data",
        cleans=True,
        rows=(
            *("ec2.instance-terminate", "fsx.lustre.delete", "eks.nodegroup.delete"),
            *("eks.cluster.delete", "ec2.nat-gateway.delete"),
        ),
    ),
    Step(name="left", does="looks for what is left", cleans=True),
)
"""Every step, in its order."""
NAMES = tuple(step.name for step in STEPS)
DESTROY_MINUTES = next(step for step in STEPS if step.name == "destroy").most_minutes
"""Minutes for which a stack is paid at most after somebody has begun to destroy it."""


def environment_of(file: Path) -> tuple[str, dict[str, Any]]:
    """Key of the environment, and `config` of a stack file. YAMLError, TypeError, KeyError or StopIteration
    where it has none."""
    config = yaml.safe_load(file.read_text())["config"]
    return next(key for key in config if key.endswith(":environment")), config


def settings_of(step: Step, config: Mapping[str, Any], key: str) -> dict[str, Any]:
    """`config` of the stack file with the pools and the stores of a step. `key`: of the environment in it.
    Everything else stays, such as the account, the zone, the charts and the job of an earlier step."""
    changed = copy.deepcopy(dict(config))
    if step.pools:
        changed[key] = {**changed[key], "pools": dict(step.pools), "storage": dict(step.storage)}
        if not step.keeps_jobs:
            changed[key].pop("jobs", None)
    return changed
