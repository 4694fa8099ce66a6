"""`trainyard check --live`: names in an existing cluster that others have."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.existing_cluster import IN_CLUSTER, NAME
from tests.support.grammar import without_a_verb
from tests.support.stackfile import at, environment_plan
from trainyard.catalog.chart_objects import ObjectName
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.questions.cluster_questions import OwnerFound
from trainyard.live.taken_names import taken_findings

JOBSETS = ObjectName("CustomResourceDefinition", "jobsets.jobset.x-k8s.io")
NODEPOOLS = ObjectName("CustomResourceDefinition", "nodepools.karpenter.sh")
KUEUE = ObjectName("ValidatingWebhookConfiguration", "kueue-validating-webhook-configuration")
TRAINING = ObjectName("Namespace", "training")
EFA = ObjectName("DaemonSet", "aws-efa-k8s-device-plugin", "kube-system")
URGENT = ObjectName("PriorityClass", "urgent")
QUEUES = (
    at("teams", {"vision": {"deployer": "arn:aws:iam::123456789012:role/d"}}),
    at("jobs", {}),
    at("queues", {}),
)


def of(release: str, namespace: str) -> OwnerFound:
    return OwnerFound(release=(release, namespace), managers=("helm",))


def by(manager: str) -> OwnerFound:
    return OwnerFound(release=None, managers=(manager,))


def said(
    found: dict[ObjectName, OwnerFound] | Exception, *edits: Any, begun: bool = False
) -> list[str]:
    told = Mock(spec=Account)
    how = {"side_effect" if isinstance(found, Exception) else "return_value": found}
    told.cluster_objects.configure_mock(**how)
    told.has_role.configure_mock(return_value=begun)
    plan = environment_plan(*IN_CLUSTER, *edits)
    lines = [str(finding) for finding in taken_findings(told, plan, NAME)]
    assert without_a_verb(lines) == []
    return lines


def test_an_empty_cluster_has_room() -> None:
    assert said({}) == []


def test_a_release_of_others_is_refused_with_its_name() -> None:
    [error] = said({JOBSETS: of("jobset", "jobset-system")})
    assert error == (
        "environment.cluster.name: must be a cluster in which the names of Kubeflow Trainer with"
        " JobSet are free; got research, with CustomResourceDefinition jobsets.jobset.x-k8s.io of"
        " Helm release jobset in jobset-system. Fix: have the owner of the cluster run `helm"
        " uninstall jobset --namespace jobset-system`, or write the name of another cluster"
    )
    assert said({JOBSETS: of("jobset", "jobset-system")}, begun=True) == [error]


def test_what_helm_does_not_know_is_refused_too() -> None:
    [error] = said({NODEPOOLS: by("kubectl-client-side-apply")})
    assert "written by kubectl-client-side-apply. Fix: have the owner" in error
    assert "delete them, or write the name of another cluster" in error


def test_a_karpenter_that_is_called_like_ours_is_ours_only_once_the_stack_has_begun() -> None:
    same = {NODEPOOLS: of("karpenter-crd", "kube-system")}
    [error] = said(same)
    assert "the names of Karpenter are free" in error
    assert said(same, begun=True) == []


def test_what_an_earlier_stack_left_is_no_fault() -> None:
    """CRDs of the Trainer stay, and belong to a chart that only this program has."""
    assert said({JOBSETS: of("kubeflow-trainer-crds", "kubeflow-system")}) == []
    assert len(said({JOBSETS: by("helm")})) == 1
    assert said({JOBSETS: by("helm")}, begun=True) == [], "of the chart that once created them"


def test_a_controller_that_a_setting_brings_can_be_left_out() -> None:
    [error] = said({KUEUE: of("kueue", "kueue")}, *QUEUES)
    assert error.startswith(
        "environment.queues: must use names that are free in research, for Kueue"
    )
    assert "Fix: delete queues, or have the owner of the cluster run" in error
    assert said({KUEUE: of("kueue", "kueue")}) == [], "without queues it may stay"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (TRAINING, "environment.namespace"),
        (EFA, "environment.cluster.name"),
        (URGENT, "environment.priorities.urgent"),
    ],
)
def test_what_pulumi_makes_is_the_stacks_where_pulumi_wrote_it(name: ObjectName, path: str) -> None:
    urgent = at("priorities", {"urgent": 1000})
    [error] = said({name: by("kubectl")}, urgent, begun=True)
    assert error.startswith(f"{path}: must ")
    assert said({name: by("pulumi-kubernetes-1a2b")}, urgent, begun=True) == []
    assert len(said({name: by("pulumi-kubernetes-1a2b")}, urgent)) == 1, "of another stack"


def test_a_message_names_few_objects_and_counts_the_others() -> None:
    plan = {
        ObjectName("ClusterRole", name): of("k", "k") for name in ("karpenter", "karpenter-core")
    }
    [error] = said({**plan, NODEPOOLS: by("kubectl")})
    assert "; 1 more objects. Fix" in error
    assert "--namespace k` and delete what Helm does not know" in error


def test_a_server_that_does_not_answer_is_a_warning() -> None:
    [warning] = said(NotAnswered("https://research: ConnectTimeoutError"))
    assert "is not checked: https://research: ConnectTimeoutError" in warning
    assert "must" not in warning
