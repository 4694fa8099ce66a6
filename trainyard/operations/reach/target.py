"""On which cluster, and in which account, a command works.

`--live`, which `make <word> LIVE=1` passes on, says: the stack of that name on an AWS account. A
command then refuses a shell whose variables lead somewhere else, because two stacks could be meant.
The cluster is that of the stack's own state, never that of kubectl's current context.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import TextIO, TypeVar

from trainyard.operations.reach.cluster import kubeconfig_in
from trainyard.operations.reach.pulumi import PulumiError, deployment

Answer = TypeVar("Answer")

ELSEWHERE = ("AWS_ENDPOINT_URL", "PULUMI_OPTION_CONFIG_FILE")
"""Variables by which a shell reaches something that is no AWS account, or another stack file."""


class TargetError(RuntimeError):
    """It is not clear, or not known, which cluster a command is about."""


def add_live(parser: argparse.ArgumentParser) -> None:
    """The option --live."""
    parser.add_argument(
        "--live",
        action="store_true",
        help="the stack is on an AWS account: refuse a shell whose variables lead elsewhere",
    )


def require_account(live: bool) -> None:
    """TargetError where --live is given and the variables of this shell lead elsewhere."""
    found = [f"{name}={os.environ[name]}" for name in ELSEWHERE if os.environ.get(name)]
    if live and found:
        raise TargetError(
            f"LIVE=1 means an AWS account, but this shell has {' and '.join(found)}. Fix: unset"
            f" {' '.join(name.partition('=')[0] for name in found)} or open another shell; or leave"
            " LIVE=1 out"
        )


def answer_of(
    read: Callable[[], Answer], *, live: bool, out: TextIO | None = None
) -> Answer | None:
    """What `read` learns from the cluster; None, after the reason is printed, where another cluster could
    be meant or it does not answer. `live`: --live is given. `out`: stderr unless another is named."""
    try:
        require_account(live)
        return read()
    except (PulumiError, TargetError) as error:
        print(error, file=out or sys.stderr)
    except RuntimeError as error:
        print(f"the cluster does not answer: {error}", file=out or sys.stderr)
    return None


def update_command(stack: str, live: bool) -> str:
    """The command that makes the cluster what the stack file says."""
    return f"pulumi up --stack {stack}" if live else f"make up STACK={stack}"


def kubeconfig(stack: str) -> str:
    """The kubeconfig in the stack's state; TargetError where the stack has no cluster."""
    if found := kubeconfig_in(deployment(stack)):
        return found
    raise TargetError(
        f"stack {stack} has no cluster: `pulumi up --stack {stack}` creates one, or the name is wrong"
    )
