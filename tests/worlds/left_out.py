"""What is left out of a whole world, one thing at a time: the dev stack's job must not complete, and
`trainyard status` must name the cause.

What AWS keeps for the stack is in tests/support/leave_outs.py; what the cluster and the job keep is
here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from rehearsal import processes
from tests.support import leave_outs as of_aws
from tests.worlds.harness import Harness

JOB, PATIENCE, STAYS_SECONDS = "t5-large", 150, 5
"""The dev stack's job; how long a crippled copy of it is watched until the cause is named, and after
that. A sound one is done in 30 s."""

Undo = Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class LeaveOut:
    """Something taken away, from AWS, from the cluster or from the job, and the words that name
    it."""

    what: str
    named: tuple[str, ...]
    """Any of these in `trainyard status`."""
    away: Callable[[Harness], Undo] = lambda _: lambda: None
    """Takes it away and returns what brings it back."""
    edit: Callable[[str], str] = str
    """Of the job's script."""
    fresh: bool = True
    """Whether nodes that are there already do not miss it."""
    restart: str = ""
    """A Deployment in kube-system whose running pods do not miss it."""


def _release(name: str, harness: Harness) -> Undo:
    harness.shell(f"helm uninstall {name} -n kube-system --keep-history --wait")
    return lambda: harness.shell(f"helm rollback {name} 1 -n kube-system --wait")


def _rule(harness: Harness) -> Undo:
    name = harness.shell(
        "kubectl get clusterrole -o name | grep trainer-controller-manager"
    ).strip()
    role = harness.get(name)
    harness.apply(
        role
        | {"rules": [rule for rule in role["rules"] if "jobsets" not in rule.get("resources", [])]}
    )
    return lambda: harness.apply(role)


def _subnet(harness: Harness) -> Undo:
    found = harness.get("ec2nodeclass g6e")
    harness.apply(
        found
        | {"spec": found["spec"] | {"subnetSelectorTerms": [{"id": "subnet-00000000000000000"}]}}
    )
    return lambda: harness.apply(found)


def _without_endpoint(script: str) -> str:
    return "\n".join(line for line in script.splitlines() if "--rdzv_endpoint" not in line)


def _from_aws(case: of_aws.LeaveOut) -> LeaveOut:
    return LeaveOut(
        what=case.what,
        named=case.named,
        away=lambda harness: case.away(harness.aws),
        fresh=case.fresh,
        restart=case.restart,
    )


LEAVE_OUTS: tuple[LeaveOut, ...] = (
    *sorted(
        (_from_aws(case) for case in of_aws.LEAVE_OUTS if case.named), key=lambda case: case.fresh
    ),
    LeaveOut(
        what="Karpenter's chart",
        away=partial(_release, "karpenter"),
        named=("nothing launches nodes",),
    ),
    LeaveOut(what="a rule of the Trainer's Role", away=_rule, named=("its Role is too narrow",)),
    LeaveOut(what="the subnet of the NodeClass", away=_subnet, named=("SubnetsReady",)),
    LeaveOut(
        what="the NVIDIA device plugin",
        away=partial(_release, "nvidia-device-plugin"),
        named=("device plugin is missing", "not initialized"),
    ),
    LeaveOut(
        what="the rendezvous endpoint", edit=_without_endpoint, named=("a rendezvous endpoint",)
    ),
)
"""Those first that need no new nodes."""


def chosen(words: Collection[str]) -> list[LeaveOut]:
    """Those that are called so; all where nothing is said."""
    return [case for case in LEAVE_OUTS if any(part in case.what for part in words)]


def leave_outs(harness: Harness, cases: Collection[LeaveOut]) -> Iterator[str]:
    """One line for each leave-out that did not behave; nothing where all did. A last job tells whether
    all came back."""
    for number, case in enumerate(cases):
        yield from _left_out(harness, case, f"crippled-{number}")
    harness.apply(harness.copy_of(JOB, "whole"))
    if not processes.wait(partial(_is_complete, harness, "whole"), PATIENCE, 2):
        yield f"what was left out is not back: {_status(harness)}"


def _left_out(harness: Harness, case: LeaveOut, name: str) -> Iterator[str]:
    started = time.monotonic()
    if case.fresh:
        harness.shell("kubectl delete nodeclaims --all --wait", check=False)
    bring_back = case.away(harness)
    _restarted(harness, case.restart)
    harness.apply(harness.copy_of(JOB, name, script=case.edit))
    said, named = "", ""
    while time.monotonic() - started < PATIENCE and not named and not _is_complete(harness, name):
        said = _status(harness)
        named = next((words for words in case.named if words in said), "")
    time.sleep(STAYS_SECONDS if named else 0)
    ended = _is_complete(harness, name)
    print(
        f"  without {case.what:45} {'completed!' if ended else 'does not complete'}"
        f"  {f'named: {named}' if named else 'NOT NAMED'}  {time.monotonic() - started:.0f} s",
        flush=True,
    )
    bring_back()
    _restarted(harness, case.restart)
    harness.shell(f"kubectl -n training delete trainjob {name} --wait", check=False)
    if ended or not named:
        yield f"without {case.what}: {'completed' if ended else said}"


def _restarted(harness: Harness, name: str) -> None:
    """The pods of a Deployment are new ones."""
    if name:
        label = f"app.kubernetes.io/name={name}"
        harness.shell(f"kubectl -n kube-system delete pods -l {label} --wait=false", check=False)


def _status(harness: Harness) -> str:
    return harness.shell(
        f"{sys.executable} -m trainyard status --stack {harness.stack}", check=False
    )


def _is_complete(harness: Harness, job: str) -> bool:
    return harness.condition(job) == "Complete"
