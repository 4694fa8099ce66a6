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
from trainyard.operations.reach.pulumi import PulumiError
from trainyard.replacing.urn import title_of

Entry = dict[str, Any]


def await_end(session: boto3.Session, resources: Collection[Entry], patience: float) -> None:
    """Return once AWS has ended its changes of these resources of the state; PulumiError after `patience` seconds."""
    deadline = time.monotonic() + patience
    while names := ", ".join(title_of(it["urn"]) for it in resources if _changes(session, it)):
        if time.monotonic() > deadline:
            raise PulumiError(f"AWS still changes these after {patience:.0f} s: {names}")
        print(f"waiting for {names}, which AWS is still changing", flush=True)
        time.sleep(5)


def _changes(session: boto3.Session, resource: Entry) -> bool:
    described = (resource.get("outputs") or {}) | (resource.get("inputs") or {})
    return changes(session, resource["type"], described, resource["id"])
