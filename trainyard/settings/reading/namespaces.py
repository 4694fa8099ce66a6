"""Keys of a stack file that stand in a namespace which nobody reads, or in a wrong one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainyard.problems import REMOVE, At, InputError

ENGINE_KEYS = ("stack", "project", "region", "aws")
"""Keys of the engine or of another namespace, which the project's own settings cannot have."""


OTHER_PROVIDERS = ("kubernetes", "eks", "aws-native", "awsx", "docker", "random", "tls", "command")
"""Providers of Pulumi whose settings only a default provider would read."""


def misplaced(
    values: Mapping[str, Any], own: Mapping[str, Any], project: str
) -> Iterator[InputError]:
    """Keys that cannot stand where they do."""
    for key in ("environment", "team"):
        if key in values and key not in own:
            yield InputError(
                path=key,
                must="begin with the project's name",
                got=key,
                fix=f"did you mean {project}:{key}?",
            )
    for key in map(str, values):
        yield from _of_nobody(key, project)
    for key in ENGINE_KEYS:
        if key in own:
            yield InputError(
                path=key,
                must="be the name of a setting",
                got=f"{project}:{key}",
                fix=f"delete {project}:{key}{'; write aws:region' * (key == 'region')}",
                write=REMOVE,
            )


def _of_nobody(key: str, project: str) -> Iterator[InputError]:
    """The error of a setting in a namespace that neither this program nor the engine reads."""
    namespace, colon, name = key.partition(":")
    ours = (project, "aws", "pulumi")
    if not colon or namespace in ours:
        return
    if namespace in OTHER_PROVIDERS:
        variable = re.sub("(?=[A-Z])", "_", name).upper()
        reads = f"; its provider reads PULUMI_K8S_{variable} of the environment"
        must = "not be set: the program makes its own providers, which read no such setting"
        fix = f"delete it{reads if namespace == 'kubernetes' else ''}"
    else:
        must = "not be set: nothing of this program reads settings of that namespace"
        meant = f"{namespace.lower()}:{name}"
        fix = f"did you mean {meant}?" if namespace.lower() in ours else "delete it"
    yield At(key).must(must, got=key, fix=fix, write=None if fix.startswith("did") else REMOVE)
