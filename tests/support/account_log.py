"""Calls that the rehearsal's account was asked, by its own log."""

from __future__ import annotations

import json
from pathlib import Path

from rehearsal.aws import identity
from rehearsal.aws.iam_actions import IAM_ACTIONS
from trainyard.objects.iam.policies import Document


def asked(logs: Path) -> set[str]:
    """Calls of the user that people and the program are. `logs`: the folder with the account's
    log."""
    lines = map(json.loads, (logs / "account.jsonl").read_text().splitlines())
    calls: list[str] = [
        line["call"]
        for line in lines
        if line.get("key") == identity.DEVELOPER_KEY and "call" in line
    ]
    return {IAM_ACTIONS.get(call, call) for call in calls}


def allowed(policies: dict[str, Document]) -> set[str]:
    """Calls that some statement of the policies allows."""
    statements = [one for document in policies.values() for one in document["Statement"]]
    return {action for statement in statements for action in statement["Action"]}
