"""On which cluster a command works: that of the stack's own state, never that of kubectl's current
context. In which account: trainyard/cli/place.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO, TypeVar

from trainyard.operations.reach.cluster import Entry, current_cluster, kubeconfig_in
from trainyard.operations.reach.pulumi import PulumiError, deployment, outputs
from trainyard.settings.reading.yaml_file import read_documents

Answer = TypeVar("Answer")


class TargetError(RuntimeError):
    """The stack has no cluster."""


def answer_of(read: Callable[[], Answer], *, out: TextIO | None = None) -> Answer | None:
    """Answer of `read` about the cluster; None, after the reason is printed, where the stack has no
    cluster or it does not answer. `out`: stderr unless another is named."""
    try:
        return read()
    except (PulumiError, TargetError) as error:
        print(error, file=out or sys.stderr)
    except RuntimeError as error:
        print(f"the cluster does not answer: {error}", file=out or sys.stderr)
    return None


def update_command(stack: str, live: bool) -> str:
    """The command that makes the cluster what the stack file says."""
    return f"pulumi up --stack {stack}" if live else f"make up STACK={stack}"


def destroy_command(stack: str, live: bool) -> str:
    """The command that deletes the stack."""
    return f"pulumi destroy --stack {stack}" if live else f"make down STACK={stack}"


def forget_command(kind: str, name: str, stack: str, live: bool) -> str:
    """The command after which an update creates a stopped job again, with the same number: the state forgets what is
    not in the cluster."""
    command = f"pulumi refresh --yes --stack {stack} --target '**:{kind}::{name}'"
    return command if live else f'eval "$(make env STACK={stack})"; {command}'


def kubeconfig(stack: str, state: Entry | None = None) -> str:
    """The kubeconfig in the stack's state, after a line to stderr that names the cluster; TargetError
    where the stack has none. `state`: as deployment() gives it, where it has been read already."""
    if found := kubeconfig_in(state or deployment(stack)):
        if cluster := current_cluster(found):
            print("cluster {} ({})".format(*cluster), file=sys.stderr, flush=True)
        return found
    if environment := environment_of(stack):
        raise TargetError(
            f"stack {stack} is not up, and makes no cluster: its jobs run in that of stack {environment}. `pulumi up"
            f" --stack {environment}` creates that one, and `pulumi up --stack {stack}` the jobs"
        )
    raise TargetError(
        f"stack {stack} has no cluster: `pulumi up --stack {stack}` creates one, or the name is wrong"
    )


def namespace_of(stack: str) -> str | None:
    """The namespace of a team's stack: its output; before the first update has ended, that of its file. None for an
    environment, and where nobody knows it."""
    return outputs(stack).get("namespace") or _of_team(stack, "namespace")


def environment_of(stack: str) -> str | None:
    """The environment stack that a team's stack file names; None for an environment, and where the file cannot be
    read here."""
    return _of_team(stack, "environment")


def _of_team(stack: str, setting: str) -> str | None:
    """A setting of the team in a stack file; None where the file has none, or cannot be read here."""
    try:
        documents, _ = read_documents(Path(f"Pulumi.{stack}.yaml").read_text(), "", by_engine=True)
    except OSError:
        return None
    settings = documents[0].value.get("config") if documents else None
    sections = settings.items() if isinstance(settings, dict) else ()
    teams = [each for key, each in sections if key.endswith(":team") and isinstance(each, dict)]
    return next((str(each[setting]) for each in teams if each.get(setting)), None)
