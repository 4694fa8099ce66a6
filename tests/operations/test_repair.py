"""What is taken back into the state after a killed update, with a Pulumi and an account that only
answer."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import boto3
import moto
import pytest
from botocore.exceptions import ClientError

from operations import adoption, lookup, repair
from operations.lookup import ExistingObject
from operations.stack_account import session_of
from tests.operations.terminal import Terminal
from tests.support.recording import Graph
from tests.support.stacks import STACKS, recorded

URN = "urn:pulumi:dev::trainyard::trainyard:network:Network$aws:ec2/vpc:Vpc::network"
ENTRY = {"type": "aws:ec2/vpc:Vpc", "name": "networkVpc", "logicalName": "network"}
COMPONENT = {"type": "trainyard:network:Network", "name": "network", "component": True}


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
        monkeypatch.setattr(repair, "last_update_failed", lambda _: failed)
        monkeypatch.setattr(repair, "find", lambda *_: found)
        monkeypatch.setattr(repair.boto3, "Session", self.session)

    def session(self, region_name: str | None) -> Account:
        self.region = region_name
        return self.account

    def pulumi(self, stack: str, *words: str, text: str | None = None) -> str:
        self.commands.append(words)
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


def test_after_an_update_that_ended_well_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    stack = Stack(monkeypatch, pending=False, failed=False)
    assert repair.main(["dev"]) == 0
    assert stack.commands == [] and "nothing to repair" in capsys.readouterr().out


def test_what_would_change_is_listed_before_the_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    stack, terminal = (
        Stack(monkeypatch, found=ExistingObject(id="vpc-1")),
        Terminal(monkeypatch, "n"),
    )
    assert repair.main(["dev"]) == 1
    assert terminal.asked == ["Make these changes to dev? [y/N] "] and not stack.changed
    assert capsys.readouterr().out == (
        "reads account 123456789012, us-east-1\nremoves the pending operation: creating network\n"
        "imports networkVpc (vpc-1)\nNothing was changed.\n"
    )


def test_without_a_terminal_nothing_changes_unless_the_machine_said_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    stack = Stack(monkeypatch, found=ExistingObject(id="vpc-1"))
    Terminal(monkeypatch, None)
    assert repair.main(["dev"]) == 2 and not stack.changed
    assert "--yes is not given. Nothing was changed." in capsys.readouterr().err
    assert repair.main(["dev", "--yes"]) == 0 and stack.changed


def test_an_object_that_a_killed_engine_forgot_is_imported_under_its_component(
    monkeypatch: pytest.MonkeyPatch,
):
    stack = Stack(monkeypatch, found=ExistingObject(id="vpc-1"))
    Terminal(monkeypatch, "y")
    assert repair.main(["dev"]) == 0
    assert [words[:2] for words in stack.commands[1:]] == [
        ("stack", "import"),
        ("import", "--file"),
        ("stack", "import"),
    ]
    assert stack.imported["resources"] == [COMPONENT, ENTRY | {"id": "vpc-1"}]


def test_a_role_that_the_program_does_not_name_is_deleted_and_not_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    stack = Stack(monkeypatch, kind=repair.ROLE)
    [operation] = stack.state["deployment"]["pending_operations"]
    urn, name = URN.replace(ENTRY["type"], repair.ROLE), "cluster-eksRole-role-1a2b3c4"
    operation["resource"] = {"urn": urn, "inputs": {"name": name}}
    there = {name: ExistingObject(id=name)}
    monkeypatch.setattr(repair, "find", lambda _, __, inputs, *___: there.get(inputs["name"]))
    assert repair.repair("dev", yes=True) == 0
    assert f"deletes role {name}, which a killed update made\n" in capsys.readouterr().out
    assert (stack.account.deleted, stack.imported) == ([name], {})
    operation["resource"]["inputs"]["name"] = "karpenter"  # as the program names it
    there["karpenter"] = ExistingObject(id="karpenter")
    assert repair.repair("dev", yes=True) == 0
    assert stack.account.deleted == [name], "the other one is imported"
    assert stack.imported["resources"][-1]["id"] == "karpenter"


def test_what_is_imported_needs_in_the_state_what_the_program_says_it_needs(
    monkeypatch: pytest.MonkeyPatch,
):
    """A destroy deletes what nothing needs first. Rules of a security group would come last."""
    component, group, rule = (URN.replace("network", name) for name in ("parts", "group", "rule"))
    kept = [{"urn": component, "type": "x"}, {"urn": "lost", "type": "x", "custom": True}]
    imported = [{"urn": urn, "type": "x", "custom": True} for urn in (rule, group, URN)]
    stack = Stack(monkeypatch, found=ExistingObject(id="vpc-1"), resources=(*kept, *imported))
    for urn, needed in ((rule, [group, URN, "gone"]), (group, [URN]), (component, [])):
        step = {"op": "create", "urn": urn, "newState": {"dependencies": needed}}
        stack.steps.append(step)
    assert repair.repair("dev", yes=True) == 0
    assert [each["urn"] for each in stack.written] == [component, "lost", URN, group, rule]
    assert [each.get("dependencies") for each in stack.written] == [
        *(None, None),
        *([], [URN], [group, URN]),
    ]


def test_the_backup_that_an_imported_file_system_was_made_of_is_kept_in_the_state(
    monkeypatch: pytest.MonkeyPatch,
):
    """FSx does not tell it, and with another one the next update would replace the file system."""
    lustre = {"urn": URN, "type": next(iter(adoption.UNTOLD)), "custom": True}
    stack = Stack(
        monkeypatch,
        found=ExistingObject(id="fs-1"),
        resources=({**lustre, "inputs": {}, "outputs": {"backupId": ""}},),
    )
    for backup in ("backup-1", None):
        inputs = {"backupId": backup} if backup else {}
        stack.steps = [{"op": "create", "urn": URN, "newState": {"inputs": inputs}}]
        assert repair.repair("dev", yes=True) == 0
        [written] = stack.written
        assert written["inputs"] == inputs
        assert written["outputs"] == {"backupId": backup or ""}


def test_the_new_object_of_a_killed_replacement_is_taken_and_the_old_one_deleted_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Else the next update would make a second one, and nobody would know of the first."""
    old = {"urn": URN, "type": ENTRY["type"], "custom": True, "id": "vpc-1"}
    user = {"urn": "subnet", "type": "x", "custom": True, "dependencies": [URN]}
    stack = Stack(monkeypatch, resources=(old, user), kind="aws:ec2/eip:Eip")
    held: list[set[str]] = []

    def find(_: Any, __: str, inputs: dict[str, Any], others: set[str]) -> ExistingObject | None:
        held.append(others)
        return ExistingObject(id="vpc-2") if inputs == {"cidrBlock": "10.9.0.0/16"} else None

    monkeypatch.setattr(repair, "find", find)
    [operation] = stack.state["deployment"]["pending_operations"]
    operation["resource"] |= {
        "type": ENTRY["type"],
        "custom": True,
        "parent": URN.replace("$aws:ec2/vpc:Vpc", ""),
        "provider": "urn:pulumi:dev::trainyard::pulumi:providers:aws::account::1",
        "inputs": {"cidrBlock": "10.9.0.0/16"},
    }
    assert repair.repair("dev", yes=True) == 0
    assert {"vpc-1"} in held
    assert "imports networkVpc (vpc-2)\n" in capsys.readouterr().out
    assert not stack.imported, "an import gives no resource of the state another object"
    [[new, *others]] = stack.writes
    assert (new["urn"], new["id"]) == (URN, "vpc-2")
    assert others == [user, old | {"delete": True}]
    assert stack.commands[-1][-2:] == ("--target", URN) and stack.commands[-1][0] == "refresh"


def test_an_old_object_that_the_stack_file_wants_again_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """After an update that failed before it deleted the object, and with nothing pending."""
    urn = URN.replace(ENTRY["type"], kind := "kubernetes:core/v1:Namespace")
    old, new = (
        {
            "urn": urn,
            "type": kind,
            "custom": True,
            "id": name,
            "inputs": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        }
        for name in ("vision", "seers")
    )
    stack = Stack(monkeypatch, pending=False, resources=(new, old | {"delete": True}))
    stack.steps = [{"op": "replace", "urn": urn, "newState": old}]
    assert repair.repair("dev", yes=True) == 0
    assert "keeps the old network (vision), which the stack file wants again" in (
        capsys.readouterr().out
    )
    assert stack.written == [old, new | {"delete": True}]


def test_what_a_killed_update_was_changing_is_read_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """EKS answers the same change a second time with an error, and every later update would fail."""
    stack = Stack(monkeypatch)
    other = URN.replace(ENTRY["type"], "kubernetes:core/v1:ConfigMap")
    stack.state["deployment"]["pending_operations"] = [
        {"type": "updating", "resource": {"urn": urn}} for urn in (URN, other)
    ]
    assert repair.repair("dev", yes=True) == 0
    assert "reads network, whose change has not ended\n" in capsys.readouterr().out
    assert stack.commands[-1] == ("refresh", "--yes", "--skip-preview", "--target", URN)


@pytest.mark.parametrize("status", ["", "uninstalling", "deployed"])
def test_a_release_whose_deletion_was_killed_is_deleted_to_its_end_and_forgotten(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: str
):
    """The next destroy fails where Helm has no such release; an update takes half a one for whole."""
    helm = Helm(monkeypatch, status)
    urn = URN.replace(ENTRY["type"], repair.RELEASE)
    karpenter = {"type": repair.RELEASE, "urn": urn, "id": "kube-system/karpenter"}
    stack = Stack(monkeypatch, resources=(CLUSTER, karpenter))
    stack.state["deployment"]["pending_operations"] = [{"type": "deleting", "resource": karpenter}]
    assert repair.repair("dev", yes=True) == 0
    assert (("helm", "uninstall", "karpenter") in helm.words) == (status == "uninstalling")
    assert "reads network, whose change has not ended\n" in capsys.readouterr().out
    assert stack.commands[-1] == ("refresh", "--yes", "--skip-preview", "--target", urn)


def test_what_was_never_made_is_left_to_the_next_update(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    stack = Stack(monkeypatch)
    assert repair.repair("dev", yes=True) == 0
    assert "removes the pending operation: creating network\n" in capsys.readouterr().out
    assert ("stack", "import") in stack.commands and stack.imported == {}


def test_a_lost_answer_leaves_no_pending_operation_and_is_looked_for_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
):
    stack = Stack(monkeypatch, pending=False, found=ExistingObject(id="vpc-1"))
    assert repair.repair("dev", yes=True) == 0
    assert [words[0] for words in stack.commands] == ["preview", "import", "stack"]
    assert stack.imported["resources"][1]["id"] == "vpc-1"


def test_where_nothing_is_lost_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    stack, terminal = Stack(monkeypatch, pending=False), Terminal(monkeypatch, "y")
    assert repair.main(["dev"]) == 0
    assert terminal.asked == [] and not stack.changed
    assert "every object that exists is in its state" in capsys.readouterr().out


def test_objects_are_looked_for_in_the_stacks_own_region(monkeypatch: pytest.MonkeyPatch):
    stack = Stack(monkeypatch)
    repair.repair("dev", yes=True)
    assert stack.region == "ap-northeast-2"


def test_credentials_of_another_account_than_the_states_change_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """It may have a stack of the same name: names and tags do not tell the two apart."""
    role = made(f"arn:aws:iam::{OURS}:role/a")
    stack = Stack(monkeypatch, found=ExistingObject(id="vpc-1"), resources=(role,), account=THEIRS)
    assert repair.main(["dev", "--yes"]) == 1
    assert not stack.changed
    said = capsys.readouterr().err
    assert f"are in account {OURS}, but these credentials are for account {THEIRS}" in said


def test_the_accounts_of_a_state_are_those_in_which_it_made_something():
    resources = [
        made(f"arn:aws:iam::{OURS}:role/a"),
        made("arn:aws:iam::aws:policy/ReadOnlyAccess", "aws:iam/policy:Policy"),
        made(f"arn:aws:ec2:us-east-1:{THEIRS}:vpc/v", "aws:ec2/vpc:Vpc", external=True),
        made(f"arn:aws:eks:us-east-1:{THEIRS}:cluster/c", "kubernetes:core/v1:ConfigMap"),
        made("not an arn"),
        {"type": "aws:sqs/queue:Queue", "urn": "u"},
    ]
    assert repair.accounts({"deployment": {"resources": resources}}) == {OURS}
    assert repair.accounts({"deployment": {}}) == set()


def test_a_stack_without_objects_of_aws_asks_no_account(monkeypatch: pytest.MonkeyPatch):
    stack = Stack(monkeypatch, kind="kubernetes:core/v1:Namespace", account="unasked")
    monkeypatch.setattr(stack.account, "get_caller_identity", None)
    assert repair.repair("team-vision", yes=True) == 0


def test_an_update_that_ran_during_the_question_leaves_nothing_to_change(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    stack = Stack(monkeypatch, found=ExistingObject(id="vpc-1"))

    def answer(_: str) -> str:
        stack.state["deployment"]["pending_operations"] = []
        return "y"

    Terminal(monkeypatch, "y")
    monkeypatch.setattr("builtins.input", answer)
    assert repair.main(["dev"]) == 1 and not stack.changed
    assert "has run in between. Nothing was changed." in capsys.readouterr().err


def test_the_egress_rule_of_an_adopted_security_group_is_listed_and_goes_with_a_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    kind = "aws:ec2/securityGroup:SecurityGroup"
    for answer, revoked in {"n": [], "y": ["sgr-1"]}.items():
        stack = Stack(monkeypatch, found=ExistingObject(id="sg-1"), kind=kind)
        Terminal(monkeypatch, answer)
        repair.main(["dev"])
        assert stack.account.revoked == revoked
        said = "removes from networkVpc (sg-1) the egress rule that AWS added"
        assert said in capsys.readouterr().out


class Helm:
    """The program helm, with one release."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, status: str) -> None:
        self.status, self.words = status, list[tuple[str, ...]]()
        monkeypatch.setattr(subprocess, "run", self.run)

    def run(self, words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        if words[0] == "kubectl":
            return subprocess.CompletedProcess(words, 0, "{}", "")
        self.words.append(tuple(words[:3]))
        if words[1] == "uninstall":
            self.status = ""
        if words[1] == "rollback":
            self.status = "deployed"
        if not self.status:
            return subprocess.CompletedProcess(words, 1, "", "Error: release: not found")
        return subprocess.CompletedProcess(
            words, 0, json.dumps({"info": {"status": self.status}}), ""
        )


CLUSTER = {
    "type": "pulumi:providers:kubernetes",
    "urn": "a",
    "inputs": {"kubeconfig": "of the cluster"},
}


@pytest.mark.parametrize("answer", ["n", "y"])
def test_a_release_that_hangs_half_installed_goes_only_after_a_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str
):
    helm = Helm(monkeypatch, "pending-install")
    Stack(monkeypatch, kind="kubernetes:helm.sh/v3:Release", resources=(CLUSTER,))
    Terminal(monkeypatch, answer)
    assert repair.main(["dev"]) == (answer == "n")
    gone = ("helm", "uninstall", "karpenter") in helm.words
    assert gone == (answer == "y") and helm.words[0] == ("helm", "status", "karpenter")
    said = "uninstalls release kube-system/karpenter, which is pending-install\n"
    assert said in capsys.readouterr().out


def test_a_release_that_stands_is_adopted_and_one_that_came_up_meanwhile_stays(
    monkeypatch: pytest.MonkeyPatch,
):
    helm = Helm(monkeypatch, "deployed")
    stack = Stack(monkeypatch, kind="kubernetes:helm.sh/v3:Release", resources=(CLUSTER,))
    assert repair.repair("dev", yes=True) == 0
    assert stack.imported["resources"][1]["id"] == "kube-system/karpenter"
    with repair.Cluster.of(stack.state) as cluster:
        cluster.end(
            repair.Release(namespace="kube-system", name="karpenter", status="pending-install")
        )
    assert {words[1] for words in helm.words} == {"status"}


@pytest.mark.parametrize("status", ["pending-upgrade", "pending-rollback", "deployed", "failed"])
def test_a_release_of_the_state_that_hangs_half_upgraded_goes_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: str
):
    """Helm says of the next upgrade that another operation is in progress."""
    helm = Helm(monkeypatch, status)
    karpenter = {"type": repair.RELEASE, "urn": "k", "id": "kube-system/karpenter"}
    Stack(monkeypatch, pending=False, resources=(CLUSTER, karpenter))
    assert repair.repair("dev", yes=True) == 0
    back = ("helm", "rollback", "karpenter") in helm.words
    assert back == status.startswith("pending")
    said = f"rolls back release kube-system/karpenter, which is {status}\n"
    assert (said in capsys.readouterr().out) == back


def test_a_cluster_that_cannot_be_looked_at_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(
        subprocess,
        "run",
        lambda words, **_: subprocess.CompletedProcess(words, 1, "", "Unable to connect"),
    )
    Stack(monkeypatch, kind="kubernetes:helm.sh/v3:Release", resources=(CLUSTER,))
    assert repair.repair("dev", yes=True) == 0
    assert (
        "could not read all objects of the cluster: Unable to connect\n" in capsys.readouterr().out
    )


def test_a_program_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert repair.main(["dev"]) == 1 and capsys.readouterr().err == "pulumi is not on PATH\n"
    stack = Stack(monkeypatch, kind="kubernetes:helm.sh/v3:Release", resources=(CLUSTER,))
    assert repair.main(["dev", "--yes"]) == 1 and not stack.changed
    assert capsys.readouterr().err == "helm is not on PATH\n"


def test_the_kubeconfig_that_the_cluster_is_asked_with_is_gone_afterwards(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    asked: list[str] = []

    def run(words: list[str], *, env: dict[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(Path(env["KUBECONFIG"]).read_text())
        return subprocess.CompletedProcess(words, 0, "{}" if "view" in words else "found")

    monkeypatch.setattr(subprocess, "run", run)
    with repair.Cluster.of({"deployment": {"resources": [CLUSTER]}}) as cluster:
        assert cluster.object(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
        ) == ExistingObject(id="a")
    assert asked == ["of the cluster"] * 2 and [*tmp_path.iterdir()] == []
    with repair.Cluster.of({"deployment": {}}) as cluster:
        assert (
            cluster.object({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
            is None
        )


def test_the_account_is_asked_as_the_stacks_own_provider_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "config").write_text(
        "[profile corp]\naws_access_key_id = x\naws_secret_access_key = x\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    role = {"roleArn": "arn:aws:iam::123456789012:role/deployer", "sessionName": "ci"}
    inputs = {"region": "eu-west-1", "profile": "corp", "assumeRoles": json.dumps([role])}
    provider = {"type": "pulumi:providers:aws", "urn": "a", "inputs": inputs}
    with moto.mock_aws():
        session = session_of({"deployment": {"resources": [provider]}}, None)
        arn = session.client("sts").get_caller_identity()["Arn"]
    assert (arn, session.region_name) == (
        "arn:aws:sts::123456789012:assumed-role/deployer/ci",
        "eu-west-1",
    )


@moto.mock_aws
def test_a_group_that_is_taken_back_reaches_nobody_as_one_that_was_made_whole():
    session = boto3.Session(
        region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    ec2 = session.client("ec2")
    group = ec2.create_security_group(GroupName="nodes", Description="nodes")["GroupId"]
    ec2.authorize_security_group_egress(
        GroupId=group,
        IpPermissions=[
            {
                "IpProtocol": "tcp",
                "FromPort": 1,
                "ToPort": 2,
                "IpRanges": [{"CidrIp": "10.0.0.0/8"}],
            }
        ],
    )
    for kind in ("aws:ec2/vpc:Vpc", "aws:ec2/securityGroup:SecurityGroup"):
        lookup.remove_unwanted_egress_rules(session, kind, group)
    rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])[
        "SecurityGroupRules"
    ]
    assert [rule["CidrIpv4"] for rule in rules if rule["IsEgress"]] == ["10.0.0.0/8"]


class Fsx:
    """Associations on two pages: a stranger's, one of ours on its way out, and ours."""

    TAGS: ClassVar = dict.fromkeys(lookup.TAGS, "it")

    def client(self, service: str) -> Fsx:
        return self

    def describe_data_repository_associations(self, NextToken: str = "") -> dict[str, Any]:
        ours = [{"Key": key, "Value": value} for key, value in self.TAGS.items()]
        first = {
            "Associations": [
                {"AssociationId": "dra-1", "Lifecycle": "AVAILABLE", "Tags": ours[:2]},
                {"AssociationId": "dra-2", "Lifecycle": "DELETING", "Tags": ours},
            ],
            "NextToken": "n",
        }
        return (
            {"Associations": [{"AssociationId": "dra-3", "Lifecycle": "CREATING", "Tags": ours}]}
            if NextToken
            else first
        )


def test_a_link_to_s3_that_a_killed_update_left_is_found_by_its_tags_on_any_page():
    session: Any = Fsx()
    kind = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
    found = lookup.find(session, kind, {"tags": Fsx.TAGS})
    assert found == ExistingObject(id="dra-3", settled=False)
    assert lookup.find(session, kind, {"tags": Fsx.TAGS}, {"dra-3"}) is None, "the state holds it"


def test_an_object_whose_inputs_are_not_known_yet_cannot_exist():
    unknown = {"vpcId": "04da6b54-80e4-46f7-96ec-b56ff0331ba9"}
    assert lookup.find(None, "aws:ec2/subnet:Subnet", unknown) is None  # type: ignore[arg-type]


def test_what_aws_lets_us_make_twice_is_not_looked_for():
    assert lookup.find(None, "aws:sqs/queuePolicy:QueuePolicy", {}) is None  # type: ignore[arg-type]


TWICE = {
    "aws:amp/workspaceConfiguration:WorkspaceConfiguration",
    "aws:ecr/lifecyclePolicy:LifecyclePolicy",
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    "aws:efs/fileSystemPolicy:FileSystemPolicy",
    "aws:s3/bucketPolicy:BucketPolicy",
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "aws:sns/topicSubscription:TopicSubscription",
    "aws:sqs/queuePolicy:QueuePolicy",
}
"""Types that AWS lets us make twice with the same result, and that end with what they belong to."""


def test_every_other_type_of_aws_is_looked_for(most: Graph):
    graphs = [most, *map(recorded, STACKS)]
    kinds = {node.kind for graph in graphs for node in graph.starting("aws:")}
    assert kinds - lookup._FINDERS.keys() == TWICE


def test_an_object_that_aws_is_still_deleting_leaves_and_is_not_adopted():
    session: Any = Fsx()
    kind = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
    assert lookup.leaves(session, kind, {"tags": Fsx.TAGS}, "dra-2")
    assert not lookup.leaves(session, kind, {"tags": Fsx.TAGS}, "dra-3")
    assert lookup.find(session, kind, {"tags": Fsx.TAGS}, {"dra-3"}) is None


def test_a_template_a_placement_group_and_a_parameter_are_found():
    """All three have names that only one object can have."""
    tags = dict.fromkeys(lookup.TAGS, "it")
    answers = {
        "describe_launch_templates": {"LaunchTemplates": [{"LaunchTemplateId": "lt-1"}]},
        "describe_placement_groups": {
            "PlacementGroups": [{"GroupName": "nodes", "State": "available"}]
        },
        "get_parameter": {"Parameter": {"Name": "/it"}},
    }

    class Client:
        def __getattr__(self, call: str) -> Any:
            return lambda **_: answers[call]

    session: Any = SimpleNamespace(client=lambda service: Client())
    for kind, inputs, id_ in (
        ("aws:ec2/launchTemplate:LaunchTemplate", {"tags": tags}, "lt-1"),
        ("aws:ec2/placementGroup:PlacementGroup", {"tags": tags}, "nodes"),
        ("aws:ssm/parameter:Parameter", {"name": "/it"}, "/it"),
    ):
        assert lookup.find(session, kind, inputs) == ExistingObject(id=id_)
        assert lookup.find(session, kind, inputs, {id_}) is None, "the state holds it"


@pytest.mark.parametrize(
    "code",
    [
        "NoSuchEntity",
        "ResourceNotFoundException",
        "InvalidVpcID.NotFound",
        "AWS.SimpleQueueService.NonExistentQueue",
    ],
)
def test_every_way_in_which_aws_says_no_such_thing_is_understood(
    monkeypatch: pytest.MonkeyPatch, code: str
):
    def absent(*_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": ""}}, "Describe")

    monkeypatch.setitem(lookup._FINDERS, "aws:iam/role:Role", absent)
    assert lookup.find(None, "aws:iam/role:Role", {}) is None  # type: ignore[arg-type]


def test_an_object_that_aws_is_still_making_is_not_settled():
    assert lookup._state("c", "CREATING") == ExistingObject(id="c", settled=False)
    assert lookup._state("c", "ACTIVE") == ExistingObject(id="c")
    assert lookup._state("c", "DELETING") == ExistingObject(id="c", leaving=True)
    assert lookup._state("c", "DELETED") is None


class Logs:
    """Log groups whose names begin alike, on two pages."""

    def client(self, service: str) -> Logs:
        return self

    def get_paginator(self, name: str) -> Logs:
        return self

    def paginate(self, logGroupNamePrefix: str) -> list[dict[str, Any]]:
        names = (f"{logGroupNamePrefix}-2", logGroupNamePrefix)
        return [{"logGroups": [{"logGroupName": name}]} for name in names]


@pytest.mark.parametrize(("name", "found"), [("/aws/eks/dev/cluster", True), ("", False)])
def test_a_log_group_that_eks_has_made_is_found_by_its_whole_name(name: str, found: bool):
    session: Any = Logs()
    kind = "aws:cloudwatch/logGroup:LogGroup"
    if not found:
        session.paginate = lambda logGroupNamePrefix: [{"logGroups": []}]
    expected = ExistingObject(id=name) if found else None
    assert lookup.find(session, kind, {"name": name}) == expected
