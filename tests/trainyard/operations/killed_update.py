"""A Pulumi and an account that only answer, after an update that was killed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from trainyard.operations.reach.lookup import ExistingObject
from trainyard.operations.reach.updates import History, Update
from trainyard.operations.recovery import adoption, repair

URN = "urn:pulumi:dev::trainyard::trainyard:network:Network$aws:ec2/vpc:Vpc::network"
ENTRY = {"type": "aws:ec2/vpc:Vpc", "name": "networkVpc", "logicalName": "network"}
COMPONENT = {"type": "trainyard:network:Network", "name": "network", "component": True}


ENDED = datetime(2026, 11, 27, 9, 30, tzinfo=UTC)
OURS, THEIRS = "123456789012", "210987654321"


class Account:
    """A boto3 session: says whose it is, and which egress rules a security group has."""

    def __init__(self, number: str) -> None:
        self.number, self.region_name = number, "us-east-1"
        self.revoked: list[str] = []
        self.deleted: list[str] = []

    def delete_role(self, RoleName: str) -> None:
        self.deleted.append(RoleName)

    def client(self, service: str) -> Account:
        return self

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": self.number}

    def describe_security_group_rules(self, **_: Any) -> dict[str, Any]:
        rule = {"SecurityGroupRuleId": "sgr-1", "IsEgress": True, "IpProtocol": "-1"}
        return {"SecurityGroupRules": [{**rule, "CidrIpv4": "0.0.0.0/0"}]}

    def revoke_security_group_egress(self, **what: Any) -> None:
        self.revoked += what["SecurityGroupRuleIds"]


def made(arn: str, kind: str = "aws:iam/role:Role", **more: Any) -> dict[str, Any]:
    return {"type": kind, "urn": "u", "outputs": {"arn": arn}, **more}


class Stack:
    """The commands that were given to it, and a state with one pending create."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        pending: bool = True,
        failed: bool = True,
        found: ExistingObject | None = None,
        resources: tuple[dict[str, Any], ...] = (),
        kind: str = ENTRY["type"],
        account: str = OURS,
    ) -> None:
        self.commands: list[tuple[str, ...]] = []
        self.variables: list[dict[str, str]] = []
        """Of each command, beside those of the process."""
        self.imported: dict[str, Any] = {}
        self.writes: list[list[dict[str, Any]]] = []
        """Resources of the state, each time that it was written."""
        self.steps: list[dict[str, Any]] = []
        """Of a preview, beside the one of the network."""
        self.kind, self.account = kind, Account(account)
        self.region: str | None = None
        operation = {"type": "creating", "resource": {"urn": URN}}
        self.state = {
            "deployment": {
                "resources": list(resources),
                "pending_operations": [operation] if pending else [],
            }
        }
        for module in (repair, adoption):
            monkeypatch.setattr(module, "deployment", lambda _: json.loads(json.dumps(self.state)))
            monkeypatch.setattr(module, "pulumi", self.pulumi)
        self.last: str | None = "failed" if failed else "succeeded"
        self.later: list[Update] = []
        """Entries of the history after the last update, newest first."""
        monkeypatch.setattr(repair, "history_of", lambda _: self.history())
        monkeypatch.setattr(repair, "find", lambda *_: found)
        monkeypatch.setattr(repair.boto3, "Session", self.session)

    def history(self) -> History:
        """The newest update that has ended, and what came after it."""
        last = [Update(kind="update", result=self.last, ended=ENDED)] if self.last else []
        return History(entries=(*self.later, *last))

    def session(self, region_name: str | None) -> Account:
        self.region = region_name
        return self.account

    def pulumi(
        self,
        stack: str,
        *words: str,
        text: str | None = None,
        more: Mapping[str, str] | None = None,
    ) -> str:
        self.commands.append(words)
        self.variables.append(dict(more or {}))
        if words[:2] == ("stack", "import"):
            self.writes.append(json.loads(text or "")["deployment"]["resources"])
        if words[0] == "preview":
            entry = {**ENTRY, "type": self.kind}
            with open(words[words.index("--import-file") + 1], "w") as file:
                json.dump({"resources": [COMPONENT, entry], "nameTable": {}}, file)
            urn = URN.replace(ENTRY["type"], self.kind)
            inputs = {"tags": {}, "name": "karpenter", "namespace": "kube-system"}
            step = {"op": "create", "urn": urn, "newState": {"inputs": inputs}}
            steps = [step, *self.steps]
            return json.dumps({"steps": steps, "config": {"aws:region": "ap-northeast-2"}})
        if words[0] == "import":
            with open(words[words.index("--file") + 1]) as file:
                self.imported = json.load(file)
        return ""

    @property
    def written(self) -> list[dict[str, Any]]:
        """Resources of the state, as it was last written."""
        return self.writes[-1]

    @property
    def changed(self) -> bool:
        """Whether its state was written."""
        return {words[0] for words in self.commands} != {"preview"}
