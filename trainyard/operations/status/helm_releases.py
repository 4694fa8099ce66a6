"""Helm releases that an update has left half installed, half upgraded or failed.

The state may call such a release sound: an update that was killed has not written how Helm ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.operations.reach.kubectl import Kubectl
from trainyard.operations.reach.snapshot import FORBIDDEN
from trainyard.operations.reach.target import update_command
from trainyard.operations.status.finding import Finding

ASKED = (
    "get",
    "secrets",
    "--all-namespaces",
    "--selector=owner=helm",
    "--label-columns=name,version,status",
    "--no-headers",
)
"""Helm keeps each revision of a release in a Secret with these labels. kubectl prints a table, for which the API
server sends no data of Secrets."""
ENDED = ("deployed", "superseded", "uninstalled")
"""Helm's words for a revision that has ended well."""
FAILED = "failed"


def unended(stack: str, kubectl: Kubectl, *, live: bool) -> Iterator[Finding]:
    """A finding for each release whose newest revision has not ended well; none where the caller may not list
    Secrets. RuntimeError where the cluster does not answer."""
    up = update_command(stack, live)
    repair = (
        f"trainyard repair --stack {stack}, where no update runs: without it Helm refuses the next upgrade;"
        f" then {up}"
    )
    for (namespace, name), (revision, status) in sorted(_newest(_rows(kubectl)).items()):
        if status not in ENDED:
            failed = status == FAILED
            how = "has failed" if failed else "runs, or was killed"
            yield Finding(
                what=f"Helm release {name} in namespace {namespace} is {status} at revision {revision}",
                why=f"its last installation, upgrade or deletion {how}",
                do=f"{up}, which upgrades it again" if failed else repair,
            )


def _newest(rows: list[list[str]]) -> dict[tuple[str, str], tuple[int, str]]:
    """Namespace and name of each release → number and status of its newest revision."""
    found = dict[tuple[str, str], tuple[int, str]]()
    for namespace, *_, name, revision, status in rows:
        before = found.get((namespace, name), (0, ""))
        found[namespace, name] = max(before, (int(revision), status))
    return found


def _rows(kubectl: Kubectl) -> list[list[str]]:
    try:
        return [line.split() for line in kubectl(*ASKED).splitlines()]
    except RuntimeError as error:
        if FORBIDDEN in str(error):
            return []
        raise
