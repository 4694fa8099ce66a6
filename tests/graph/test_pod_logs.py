"""What keeps the logs of pods: what an environment makes for it."""

from __future__ import annotations

import json

import pytest

from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import Edit, at, environment_plan, without
from tests.support.stacks import KEY
from trainyard.live.encryption import encryption
from trainyard.plans.identity import digest
from trainyard.reports import policy
from trainyard.reports.costs.cost import estimate

KEPT = at("logs", {"days": 14})


@pytest.fixture(scope="module")
def kept() -> Graph:
    return environment(KEPT)


def test_the_setting_adds_its_own_resources_and_changes_none(kept: Graph) -> None:
    before, after = json.loads(environment().golden()), json.loads(kept.golden())
    assert [each for each in before if each not in after] == []
    added = {each["name"] for each in after if each not in before}
    assert all(name.startswith(("pod-logs", "trainyard-logs")) for name in added), added


def test_lines_are_kept_for_the_days_that_the_setting_says(kept: Graph) -> None:
    group = kept["LogGroup pod-logs"].inputs
    assert group["retentionInDays"] == 14
    assert group["name"].startswith("/trainyard/pods/dev-")
    assert kept.outputs["log_group"] == group["name"]


def test_its_role_may_write_to_that_group_and_do_nothing_else(kept: Graph) -> None:
    document = json.loads(kept["RolePolicy pod-logs-write"].inputs["policy"])
    [statement] = document["Statement"]
    assert statement["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]
    assert all("log-group" in arn or "pod-logs" in arn for arn in statement["Resource"])


def test_only_its_own_service_account_gets_the_role(kept: Graph) -> None:
    trust = json.loads(kept["Role pod-logs"].inputs["assumeRolePolicy"])
    limits = trust["Statement"][0]["Condition"]["StringEquals"]
    assert limits["aws:RequestTag/kubernetes-service-account"] == "trainyard-logs"
    assert limits["aws:RequestTag/kubernetes-namespace"] == "kube-system"


def test_its_pods_start_after_their_identity_on_nodes_of_pools_and_hold_up_no_update(
    kept: Graph,
) -> None:
    daemons = kept["DaemonSet trainyard-logs"]
    assert kept.waits_for(daemons, kept["PodIdentityAssociation pod-logs"])
    assert kept.waits_for(daemons, kept["RolePolicy pod-logs-write"])
    assert daemons.inputs["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    spec = daemons.inputs["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"trainyard.io/nodes": "training"}
    [container] = spec["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    read_only = {each["name"]: each.get("readOnly") for each in container["volumeMounts"]}
    assert read_only == {"file": True, "logs": True, "state": None}


def test_another_configuration_is_another_pod(kept: Graph) -> None:
    """Fluent Bit reads its file when it starts."""
    template = kept["DaemonSet trainyard-logs"].inputs["spec"]["template"]
    file = kept["ConfigMap pod-logs-file"].inputs["data"]["fluent-bit.conf"]
    assert template["metadata"]["annotations"] == {"trainyard/file": digest([file])}


def test_a_key_of_the_company_encrypts_the_group_and_may_be_used_for_it() -> None:
    assert environment(KEPT, at("kms_key_arn", KEY))["LogGroup pod-logs"].inputs["kmsKeyId"] == KEY
    plan = environment_plan(KEPT, at("kms_key_arn", KEY))
    assert "log groups" in " ".join(encryption(plan))


def test_whoever_deploys_it_may_make_its_group_and_nobody_elses() -> None:
    def groups(*edits: Edit) -> list[list[str]]:
        made = policy.policies(environment_plan(*edits))
        return [
            each["Resource"]
            for document in made.values()
            for each in document["Statement"]
            if each["Sid"] == "WriteLogs"
        ]

    none = without("cluster.log_retention_days")
    [named] = groups(KEPT, none)
    assert "arn:aws:logs:ap-northeast-2:*:log-group:/trainyard/pods/dev-*" in named
    assert groups(none) == []


def test_the_plan_says_what_a_gigabyte_of_logs_costs() -> None:
    [line] = [
        each for each in estimate(environment_plan(KEPT)).usage if each.what == "logs of pods"
    ]
    assert line.what == "logs of pods"


def test_an_isolated_network_has_an_endpoint_for_it() -> None:
    isolated = (
        at("network.internet", "none"),
        at("network.endpoints", "private"),
        at("artifacts.images", "111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"),
    )
    for edits, there in ((isolated, False), ((*isolated, KEPT), True)):
        endpoints = environment_plan(*edits).network.endpoints
        assert endpoints and ("logs" in endpoints.apis) == there
