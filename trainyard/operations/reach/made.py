"""Jobs that the state of a stack has: also those of an update that has not ended, which no output names yet."""

from __future__ import annotations

from typing import Any

from trainyard.catalog.job_kinds import KIND_OF_ENGINE_TYPE
from trainyard.operations.reach.pulumi import Entry
from trainyard.replacing.urn import name_of


def made_jobs(state: Entry) -> dict[str, Any]:
    """Entry → kind, namespace and name of each job, as the output `jobs` has them."""
    resources = state["deployment"].get("resources") or []
    return {
        name_of(each["urn"]): {"kind": KIND_OF_ENGINE_TYPE[each["type"]], **_called(each)}
        for each in resources
        if each["type"] in KIND_OF_ENGINE_TYPE and each.get("id")
    }


def _called(resource: Entry) -> dict[str, str]:
    """Namespace and name of an object in a state, whose id is both with a slash between them."""
    namespace, _, name = resource["id"].rpartition("/")
    return {"namespace": namespace, "name": name}
