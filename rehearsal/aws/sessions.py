"""Sessions of Systems Manager: port forwards through an instance whose role lets the agent work."""

from __future__ import annotations

import secrets
from typing import Any

from rehearsal.aws import backends
from rehearsal.aws.operations import Call, Fields, NotBuilt, answers, refuse

AGENT_POLICY = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
DOCUMENT = "AWS-StartPortForwardingSessionToRemoteHost"


@answers("ssm", "StartSession")
def _start(call: Call) -> Fields:
    """The agent is connected while the instance runs and its role has the policy."""
    if call["DocumentName"] != DOCUMENT:
        raise NotBuilt(f"sessions of the document {call['DocumentName']}")
    missing = {"host", "portNumber", "localPortNumber"} - {*(call["Parameters"] or {})}
    refuse(missing, "InvalidParameters", f"Parameter(s) missing: {', '.join(sorted(missing))}")
    refuse(
        not _connected(call, call["Target"]),
        "TargetNotConnected",
        f"{call['Target']} is not connected.",
    )
    session = f"developer-{secrets.token_hex(8)}"
    return {"SessionId": session, "TokenValue": secrets.token_hex(16), "StreamUrl": "wss://ssm"}


answers("ssm", "TerminateSession")(lambda call: {"SessionId": call["SessionId"]})


def _connected(call: Call, id_: str) -> bool:
    running = [one for one in call.ec2.all_instances() if one.id == id_ and one.state == "running"]
    return any(AGENT_POLICY in _policies(call, one.id) for one in running)


def _policies(call: Call, instance: str) -> set[str]:
    """ARNs of the managed policies of the instance's role."""
    associations: Any = call.ec2.iam_instance_profile_associations.values()
    return {
        arn
        for association in associations
        if association.instance.id == instance
        for profile in [association.iam_instance_profile]
        for role in backends.iam().instance_profiles[profile.name].roles
        for arn in role.managed_policies
    }
