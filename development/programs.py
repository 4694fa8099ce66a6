"""Programs of the rehearsal that the stacks of this checkout run on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rehearsal.toolchain import go
from rehearsal.toolchain.programs import (
    BY_NAME,
    DEFAULT_KUBERNETES,
    KUBERNETES_RELEASES,
    NEEDED,
    PROGRAMS,
    own_go,
)
from trainyard.catalog.versions import NEWEST_KARPENTER

LOOKING = ("pulumi", "kubectl", "helm")
"""Names of the programs that a preview runs: it starts no cluster."""
ANY = "*"
Setting = tuple[str | bool, ...]
"""The path of a setting of an environment, and its value or ANY."""


def _of_trainer(release: str) -> Setting:
    return ("trainer", "version", release)


WANTED: dict[str, tuple[Setting, ...]] = {
    **{
        f"{name}-{release}": (("cluster", "version", release),)
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
        for release in KUBERNETES_RELEASES
        if release != DEFAULT_KUBERNETES
    },
    "karpenter-1.15": (("karpenter", "version", NEWEST_KARPENTER),),
    "trainer": (_of_trainer("2.1.0"),),
    "jobset": (_of_trainer("2.1.0"),),
    "trainer-2.3": (_of_trainer("2.3.0"),),
    "jobset-0.12": (_of_trainer("2.3.0"),),
    "training-operator": (("training_operator", "version", "1.8.1"),),
    "kueue": (("queues", ANY), _of_trainer("2.1.0")),
    "kueue-0.19": (("queues", ANY), _of_trainer("2.3.0")),
    "prometheus": (("metrics", ANY),),
    "promtool": (("metrics", ANY),),
    "alertmanager": (("metrics", "alerts", ANY),),
    "amtool": (("metrics", "alerts", ANY),),
    "pushgateway": (("metrics", "push_gateway", True),),
    "crane": (("registries", ANY),),
}
"""Program → the settings that must all be there for it. No stack needs a program that is missing here."""


def wanted(environment: Mapping[str, Any]) -> list[str]:
    """The programs that a stack with these settings of its environment runs on."""
    return [
        program.name
        for program in PROGRAMS
        if program.name in NEEDED
        or program.name in WANTED
        and all(_says(environment, *setting) for setting in WANTED[program.name])
    ]


def fetch_modules(environment: Mapping[str, Any], report: go.Report) -> None:
    """Have the modules whose charts such a stack installs, and which need a newer Go than the others: a preview
    needs them before `up` has built their programs."""
    for program in (BY_NAME[name] for name in wanted(environment)):
        if own_go(program.folder):
            go.module_folder(program.folder, program.module, report)


def to_build(environment: Mapping[str, Any]) -> str:
    """Programs that such a stack runs on and that are not built, and how long that takes; empty where all are."""
    missing = [each for name in wanted(environment) if not (each := BY_NAME[name]).built.exists()]
    minutes = math.ceil(sum(each.seconds for each in missing) / 60)
    names = ", ".join(each.name for each in missing)
    return f"{names}; about {minutes} minutes on two cores" if missing else ""


def _says(settings: Any, *path: str | bool) -> bool:
    for key in path[:-1]:
        settings = settings.get(key) if isinstance(settings, Mapping) else None
    return settings == path[-1] or path[-1] == ANY and settings is not None
