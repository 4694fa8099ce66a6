"""Waits until Kubernetes counts jobs of a kind for the quota of their namespace: before that it refuses
each of them.

A quota whose kind is younger is looked at again only every five minutes, which EKS does not change:
`status unknown for quota` (Kubernetes 1.35, resource_quota_controller.go, enqueueAll; and
apiserver's quota admission). So the first jobs of a team in a new cluster came too early.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

from components.jobs.wait_for_job import Kubectl, answer
from trainyard.catalog.job_kinds import resource_of

MINUTES = 7.0
"""Minutes after which the job is sent all the same, and the API server says what is wrong."""
POLL_SECONDS = 5.0


def until_counted(kubectl: Kubectl, kind: str, *, say: Callable[[str], object]) -> None:
    """Return when each quota of kubectl's namespace that limits jobs of this kind counts them. `say` is
    told what it waits for. Where the quotas cannot be read, it waits for nothing."""
    deadline, said = time.monotonic() + MINUTES * 60, False
    while any(_uncounted(kubectl, kind)) and time.monotonic() < deadline:
        if not said:
            say(
                f"waits until Kubernetes counts {kind}s for the quota of their namespace, which takes up to"
                " five minutes in a new cluster"
            )
            said = True
        time.sleep(POLL_SECONDS)


def _uncounted(kubectl: Kubectl, kind: str) -> Iterator[str]:
    """Quotas that limit jobs of this kind and have not counted them yet."""
    count = f"count/{resource_of(kind)}"
    shown = answer(*kubectl, "get", "resourcequotas", "--output=json")
    for quota in json.loads(shown)["items"] if shown else ():
        limit, used = quota["spec"].get("hard") or {}, quota.get("status", {}).get("used") or {}
        if count in limit and count not in used:
            yield quota["metadata"]["name"]
