"""Changes of objects of AWS that go on after an engine was killed or stopped.

EKS takes minutes to move a control plane, and describes it as it was until then. Whoever reads it meanwhile writes
the old version into the state, and the next update asks for a change that has been made: EKS refuses it.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

import boto3

from trainyard.operations.reach.lookup import changes
from trainyard.operations.recovery.pause import pause
from trainyard.replacing.urn import title_of

Entry = dict[str, Any]


def await_end(session: boto3.Session, resources: Collection[Entry], patience: float) -> None:
    """Return once AWS has ended its changes of these resources of the state; PulumiError after `patience` seconds."""
    deadline = time.monotonic() + patience
    while names := ", ".join(title_of(it["urn"]) for it in resources if changes(session, it)):
        over = f"AWS still changes these after {patience:.0f} s: {names}"
        pause(names, "AWS is still changing", over, deadline)
