"""Every option of the tool, declared once: a word names those that it takes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

MOST_MINUTES = 24 * 60
"""The longest time that a shell on a node may last: trainyard/operations/nodes/shell_job.py ends its pod then."""


def _minutes(text: str) -> int:
    """A number of minutes; ArgumentTypeError, which argparse prints, where it is none."""
    if not text.isdecimal() or not 1 <= int(text) <= MOST_MINUTES:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to {MOST_MINUTES}; got {text}")
    return int(text)


def _dollars(text: str) -> Decimal:
    """An amount of dollars; ArgumentTypeError, which argparse prints, where it is none."""
    if not re.fullmatch(r"\d+(\.\d{1,2})?", text):
        raise argparse.ArgumentTypeError(f"must be an amount of dollars such as 15; got {text}")
    return Decimal(text)


def _release(text: str) -> str:
    """A release of the Trainer; ArgumentTypeError, which argparse prints, where there is none."""
    from trainyard.catalog.versions import (
        TRAINERS,  # only here: most words need no table of releases
    )

    if text not in TRAINERS:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(TRAINERS)}; got {text}")
    return text


def _flag(sentence: str) -> dict[str, Any]:
    return {"action": "store_true", "help": sentence}


def _text(metavar: str, sentence: str, **how: Any) -> dict[str, Any]:
    return {"metavar": metavar, "help": sentence, **how}


OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "--stack": _text("STACK", "read Pulumi.STACK.yaml of this folder (the only one, or dev)"),
    "--live": _flag("the AWS account, and no rehearsal"),
    "--rehearsal": _flag("the rehearsal that runs in this folder, and no AWS account"),
    "--json": _flag("print JSON, for programs"),
    "--yes": _flag("do it without a question, for programs; on an AWS account it needs --live"),
    "--job": _text("JOB", "the job (may be left out where there is only one)"),
    "--pool": _text("POOL", "the pool (may be left out where only one can be meant)"),
    "--image": _text(
        "IMAGE", "the image (by default that of a job; of `notebook` NVIDIA's of PyTorch)"
    ),
    # Before anything is created.
    "--policies": _flag("judge the stack by the policies of policy_pack/, too"),
    "--deadline": _text(
        "SECONDS", "stop asking the account after so long (60 by default)", type=float
    ),
    "--picture": _flag("print the chart of docs/critical-path.md"),
    "--html": _text("FILE", "write a page to look at into this file, which needs no other file"),
    "--part": _text("NAME", "print one policy alone, such as network, for `aws iam create-policy`"),
    "--preview": _flag("print the policy of a role that only previews and refreshes: reads only"),
    "--key": _flag("print the statements that the policy of environment.kms_key_arn needs"),
    "--boundary": _flag("print the least that environment.permissions_boundary must allow"),
    "--team": _text("NAME", "a team of environment.teams (by default those that it does not list)"),
    "--to": _text(
        "FOLDER",
        "write to this folder (%(default)s by default)",
        type=Path,
        default=Path("dashboards"),
    ),
    "--trainer": _text(
        "RELEASE", "judge for this release of the Trainer, such as 2.1.0", type=_release
    ),
    # Of `new`: the answers to its questions.
    "--name": _text("NAME", "name of the environment (dev by default) or of the team"),
    "--region": _text("REGION", "AWS region of an environment"),
    "--zone": _text("ZONE", "zone of its GPU nodes, such as us-east-1a"),
    "--instance-type": _text("TYPE", "their instance type (g6e.48xlarge by default)"),
    "--public-cidrs": _text(
        "CIDRS", "who may reach the API server: 203.0.113.7/32, with commas between several"
    ),
    "--account": _text("ID", "AWS account of an environment; every other one is refused"),
    "--email": _text("ADDRESS", "who is told when a run ends (nobody by default)"),
    "--environment": _text("STACK", "environment of a team (the only one there, or dev)"),
    "--contract": _text(
        "FILE", "contract of a team's environment (contract.yaml, where it is there)"
    ),
    "--max-gpus": _text("GPUS", "the most GPUs that pods of a team have at once (16 by default)"),
    "--source": _text(
        "ADDRESS",
        "address from which pip installs Trainyard (as this tool was installed; of a clone, its origin)",
    ),
    "--reference": _flag("print the reference of stack files as Markdown instead"),
    # On a cluster.
    "--silence": _text(
        "MINUTES",
        "name running jobs that have logged nothing for so long (5 by default)",
        type=float,
    ),
    "--at-most-dollars": _text(
        "N", "begin no step that could cost more than is left of so many dollars", type=_dollars
    ),
    "--destroy": _flag("only delete what an earlier call has made, and look for what is left"),
    "--look-after": _text(
        "MINUTES",
        "look for what is left so long after deleting (%(default)g by default)",
        type=float,
        default=10.0,
    ),
    "--restored": _flag("look also after an update that succeeded: the state is an older one"),
    "--rank": _text(
        "RANK", "print only the node of this number, from 0 (all by default)", type=int
    ),
    "--follow": _flag("go on printing until the job has ended"),
    "--past": _flag("print what CloudWatch Logs keeps, also of pods and jobs that are gone"),
    "--from": _text("FOLDER", "build this folder, which has a Dockerfile", dest="folder"),
    "--registry": _text("NAME", "one of `registries` (may be left out where there is one)"),
    "--list": _flag("print the list, and ask no account"),
    "--charts": _flag("copy charts, and no images"),
    "--notebook": _flag("copy the image of `trainyard notebook`, too"),
    "--nodes": _text("NODES", "nodes of a new entry, at least 2 (all of the pool)", type=int),
    "--gpus": _text(
        "GPUS", "GPUs of the pod on a GPU pool (%(default)s by default)", type=int, default=1
    ),
    "--minutes": _text(
        "MINUTES",
        f"end the pod after this time (%(default)s by default, {MOST_MINUTES} at most)",
        type=_minutes,
        default=60,
    ),
    "--run": _text("COMMAND", "run this command, print its output, and end"),
    "--once": _flag("print one frame, and end"),
    "--svg": _text("FILE", "write one frame as a picture into this file"),
    "--every": _text(
        "SECONDS", "read again after so long (%(default)g by default)", type=float, default=5.0
    ),
}
"""Name of an option → what argparse takes."""
