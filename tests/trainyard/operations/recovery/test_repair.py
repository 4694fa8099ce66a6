"""What is taken back into the state after a killed update, with a Pulumi and an account that only
answer."""

from __future__ import annotations

import json
import subprocess
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.tool import run_word
from tests.trainyard.operations.killed_update import (
    ENDED,
    ENTRY,
    OURS,
    THEIRS,
    URN,
    Stack,
    made,
)
from tests.trainyard.operations.terminal import Terminal
from trainyard.operations.reach.lookup import ExistingObject
from trainyard.operations.reach.updates import REPAIR, Update
from trainyard.operations.recovery import repair
from trainyard.operations.recovery.instances import LeftInstance
from trainyard.operations.recovery.interfaces import SUBNET

PREVIEWS = "previews dev, to know what the program wants\n"
READ = ("refresh", "--yes", "--skip-preview", "--message", REPAIR)


def test_after_an_update_that_ended_well_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    stack = Stack(monkeypatch, pending=False, failed=False)
    assert run_word("repair", ["dev"]) == 0
    said = capsys.readouterr().out
    assert stack.commands == [] and said == "dev: the last update succeeded; nothing to repair\n"
    stack.last = None
    assert run_word("repair", ["dev"]) == 0
    assert capsys.readouterr().out == "dev: no update has run yet; nothing to repair\n"
    stack.later = [Update(kind="update", result="in-progress", ended=None)]
    assert run_word("repair", ["dev"]) == 0
    assert "no update has run yet" not in capsys.readouterr().out, "it has made nothing yet"


TAGS = {"tags": {"kubernetes.io/cluster/dev-cluster-1": "shared"}}
SUBNET_OF_DEV = {
    "type": SUBNET,
    "urn": f"urn:pulumi:dev::trainyard::{SUBNET}::network-private",
    "id": "subnet-1",
    "inputs": TAGS,
}
NODE = LeftInstance(id="i-1", type="p5.48xlarge", cost="about $55.04/hour")


def test_nodes_that_run_on_after_their_cluster_are_ended_after_a_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A destroy that keeps a Lustre store keeps its subnet, and so ends well beside them."""
    stack = Stack(monkeypatch, pending=False, failed=False, resources=(SUBNET_OF_DEV,))
    ended = list[LeftInstance]()
    monkeypatch.setattr(repair.interfaces, "exists", lambda *_: False)
    monkeypatch.setattr(repair.instances, "left", lambda *_: [] if ended else [NODE])
    monkeypatch.setattr(repair.instances, "end", lambda _, found: ended.extend(found))
    terminal = Terminal(monkeypatch, "n")
    assert run_word("repair", ["dev"]) == 3 and ended == [] and stack.commands == []
    assert terminal.asked == ["End it? [y/N] "]
    assert "ends instance i-1, p5.48xlarge, about $55.04/hour: " in capsys.readouterr().out
    assert run_word("repair", ["dev", "--yes"]) == 0 and ended == [NODE]
    assert "AWS ends what was listed within minutes\n" in capsys.readouterr().out
    assert run_word("repair", ["dev"]) == 0
    assert capsys.readouterr().out == "dev: the last update succeeded; nothing to repair\n"


def test_after_a_refresh_a_cluster_that_is_gone_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The refresh leaves the kubeconfig in the state: `repair` named the refresh as what to do, again and again."""
    Stack(monkeypatch, pending=False, resources=(SUBNET_OF_DEV, CLUSTER))
    monkeypatch.setattr(repair.interfaces, "exists", lambda *_: False)
    monkeypatch.setattr(repair.interfaces, "leaked", lambda *_: [])
    monkeypatch.setattr(repair.instances, "left", lambda *_: [])
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("kubectl was called"))
    assert run_word("repair", ["dev"]) == 0
    assert "nothing to repair" in capsys.readouterr().out


@pytest.mark.parametrize("known", ["to the state", "to AWS"])
def test_while_there_is_a_cluster_its_nodes_are_left_to_karpenter(
    known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = {"type": repair.CLUSTER, "urn": "u", "id": "dev-cluster-1", "inputs": {}}
    there = (SUBNET_OF_DEV, *([cluster] if known == "to the state" else []))
    Stack(monkeypatch, pending=False, failed=False, resources=there)
    monkeypatch.setattr(repair.interfaces, "exists", lambda *_: known == "to AWS")
    monkeypatch.setattr(repair.instances, "left", lambda *_: pytest.fail("AWS was asked"))
    assert run_word("repair", ["dev"]) == 0


def test_fields_that_somebody_has_changed_by_hand_do_not_end_the_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The API server refuses the preview of an update of such a field, unless it is told to take it."""
    stack = Stack(monkeypatch)
    run_word("repair", ["dev", "--yes"])
    told = [more for words, more in zip(stack.commands, stack.variables, strict=True) if more]
    previews = [words for words in stack.commands if words[0] == "preview"]
    assert told == [{"PULUMI_K8S_ENABLE_PATCH_FORCE": "true"}] * len(previews) and previews


@pytest.mark.parametrize(
    ("written", "looks"), [("09:30:00.7", False), ("09:30:04.123456789", True)]
)
def test_an_update_that_was_killed_is_not_in_the_history_and_its_state_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], written: str, looks: bool
) -> None:
    """It had no operation under way, so it left none."""
    stack = Stack(monkeypatch, pending=False, failed=False)
    stack.state["deployment"]["manifest"] = {"time": f"2026-11-27T{written}Z"}
    assert run_word("repair", ["dev"]) == 0
    said = capsys.readouterr().out
    assert ("the last update succeeded" in said) != looks
    assert ("every object that exists is in its state" in said) == looks


def test_a_first_update_that_was_killed_is_looked_into(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = Stack(monkeypatch, pending=False, resources=(made(f"arn:aws:iam::{OURS}:role/a"),))
    stack.last = None
    assert run_word("repair", ["dev"]) == 0
    assert "no update has run yet" not in capsys.readouterr().out


def test_after_an_update_that_was_refused_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`up` did the whole repair, as if the update had been killed: the program had not begun it."""
    stack = Stack(monkeypatch, pending=False, failed=False)
    refused = Update(
        kind="update",
        result="failed",
        ended=ENDED + timedelta(minutes=5),
        registered={"same": 1},
        sections=frozenset({"trainyard:environment"}),
    )
    stack.later = [refused]
    stack.state["deployment"]["manifest"] = {"time": "2026-11-27T09:35:00Z"}
    said = "dev: the last update was refused or stopped before it changed anything"
    assert run_word("repair", ["dev"]) == 0 and stack.commands == []
    before = ", and the one before it succeeded"
    assert capsys.readouterr().out == f"{said}{before}; nothing to repair\n"
    stack.last = None
    assert run_word("repair", ["dev"]) == 0 and stack.commands == []
    assert capsys.readouterr().out == f"{said}; nothing to repair\n"
    operation = {"type": "creating", "resource": {"urn": URN}}
    stack.state["deployment"]["pending_operations"] = [operation]
    assert run_word("repair", ["dev", "--yes"]) == 0 and stack.changed, "a kill is repaired"


def test_an_older_state_that_was_put_back_gets_what_exists(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The history of Pulumi does not tell that the state is older than the last update."""
    stack = Stack(monkeypatch, found=ExistingObject(id="vpc-1"), pending=False, failed=False)
    assert run_word("repair", ["dev", "--restored", "--yes"]) == 0
    assert "imports networkVpc (vpc-1)" in capsys.readouterr().out and stack.changed


def test_what_would_change_is_listed_before_the_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    stack, terminal = (
        Stack(monkeypatch, found=ExistingObject(id="vpc-1")),
        Terminal(monkeypatch, "n"),
    )
    assert run_word("repair", ["dev"]) == 3
    assert terminal.asked == ["Make these changes to dev? [y/N] "] and not stack.changed
    assert capsys.readouterr().out == (
        "reads account 123456789012, us-east-1\nremoves the pending operation: creating Vpc network\n"
        "imports networkVpc (vpc-1)\nNo object and no state was changed.\n"
    )


def test_without_a_terminal_nothing_changes_unless_the_machine_said_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    stack = Stack(monkeypatch, found=ExistingObject(id="vpc-1"))
    Terminal(monkeypatch, None)
    assert run_word("repair", ["dev"]) == 2 and not stack.changed
    assert "--yes is not given. No object and no state was changed." in capsys.readouterr().err
    assert run_word("repair", ["dev", "--yes"]) == 0 and stack.changed


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
    assert "keeps the old Namespace network (vision), which the stack file wants again" in (
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
    assert "reads Vpc network, whose change has not ended\n" in capsys.readouterr().out
    assert stack.commands[-1] == (*READ, "--target", URN)


def test_what_an_interrupted_update_may_have_changed_is_read_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a ctrl-C the plugin has ended the operation with an error, and AWS goes on with it."""
    stack = Stack(monkeypatch, pending=False)
    cluster = URN.replace(ENTRY["type"], "aws:eks/cluster:Cluster")
    other = URN.replace(ENTRY["type"], "kubernetes:core/v1:ConfigMap")
    stack.steps = [{"op": "update", "urn": urn, "newState": {}} for urn in (cluster, other)]
    assert repair.repair("dev", yes=True) == 0
    assert "reads Cluster network, which may have been changed already\n" in capsys.readouterr().out
    assert stack.commands[-1] == (*READ, "--target", cluster)
    stack.later = [Update(kind="refresh", result="succeeded", message=REPAIR, ended=ENDED)]
    assert repair.repair("dev", yes=True) == 0
    assert capsys.readouterr().out.endswith(
        "dev: every object that exists is in its state; nothing to repair\n"
    ), "a second repair asks nothing again"
    stack.state["deployment"]["manifest"] = {"time": "2026-11-27T09:31:00Z"}
    assert repair.repair("dev", yes=True) == 0
    assert "reads Cluster network" in capsys.readouterr().out, "another update was killed since"


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
    assert "reads Release network, whose change has not ended\n" in capsys.readouterr().out
    assert stack.commands[-1] == (*READ, "--target", urn)


def test_what_was_never_made_is_left_to_the_next_update(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    stack = Stack(monkeypatch)
    assert repair.repair("dev", yes=True) == 0
    assert "removes the pending operation: creating Vpc network\n" in capsys.readouterr().out
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
    assert run_word("repair", ["dev"]) == 0
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
    assert run_word("repair", ["dev", "--yes"]) == 1
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
    assert run_word("repair", ["dev"]) == 1 and not stack.changed
    assert "has run in between. No object and no state was changed." in capsys.readouterr().err


def test_the_egress_rule_of_an_adopted_security_group_is_listed_and_goes_with_a_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    kind = "aws:ec2/securityGroup:SecurityGroup"
    for answer, revoked in {"n": [], "y": ["sgr-1"]}.items():
        stack = Stack(monkeypatch, found=ExistingObject(id="sg-1"), kind=kind)
        Terminal(monkeypatch, answer)
        run_word("repair", ["dev"])
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
    assert run_word("repair", ["dev"]) == (3 if answer == "n" else 0)
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
    with repair.StackCluster.of(stack.state) as cluster:
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


def test_without_an_answer_of_the_cluster_nothing_is_repaired(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Each object would pass for one that was never made, and the next update would make it again."""

    def refused(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, 1, "", "I1124 memcache.go\nUnable to connect")

    monkeypatch.setattr(subprocess, "run", refused)
    stack = Stack(monkeypatch, kind="kubernetes:helm.sh/v3:Release", resources=(CLUSTER,))
    assert run_word("repair", ["dev", "--yes"]) == 1 and stack.commands == []
    said = capsys.readouterr().err
    assert said.startswith(
        "the cluster of dev does not answer: Unable to connect\nNo object and no state was"
    )
    assert "    PULUMI_K8S_DELETE_UNREACHABLE=true pulumi refresh --stack dev\n" in said


def test_an_object_that_cannot_be_read_is_not_taken_for_one_that_does_not_exist(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def run(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        answers = words[0] == "kubectl"
        return subprocess.CompletedProcess(words, not answers, "{}", "" if answers else "Forbidden")

    monkeypatch.setattr(subprocess, "run", run)
    stack = Stack(monkeypatch, kind="kubernetes:helm.sh/v3:Release", resources=(CLUSTER,))
    assert run_word("repair", ["dev", "--yes"]) == 1 and not stack.changed
    assert capsys.readouterr().err.removeprefix(PREVIEWS) == (
        "could not read all objects of the cluster: Forbidden. No object and no state was changed.\n"
    )


def test_a_program_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_word("repair", ["dev"]) == 1 and capsys.readouterr().err == (
        "pulumi is not on PATH. Fix: install it (https://www.pulumi.com/docs/install), or add its folder"
        " to PATH\n"
    )
    stack = Stack(monkeypatch, kind="kubernetes:helm.sh/v3:Release", resources=(CLUSTER,))
    assert run_word("repair", ["dev", "--yes"]) == 1 and stack.commands == []
    assert "kubectl is not on PATH. Fix: install it (" in capsys.readouterr().err


def test_the_kubeconfig_that_the_cluster_is_asked_with_is_gone_afterwards(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    asked: list[str] = []

    def run(words: list[str], *, env: dict[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(Path(env["KUBECONFIG"]).read_text())
        return subprocess.CompletedProcess(words, 0, "{}" if "view" in words else "found")

    monkeypatch.setattr(subprocess, "run", run)
    with repair.StackCluster.of({"deployment": {"resources": [CLUSTER]}}) as cluster:
        assert cluster.object(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
        ) == ExistingObject(id="a")
    assert asked == ["of the cluster"] * 2 and [*tmp_path.iterdir()] == []
    with repair.StackCluster.of({"deployment": {}}) as cluster:
        assert (
            cluster.object({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
            is None
        )
