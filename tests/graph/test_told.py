"""Who is told what becomes of runs: what an environment makes for it, and what it refuses."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from rehearsal.providers.kubernetes import kinds
from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import Edit, at, environment_plan, errors, own_network
from trainyard.objects.programs.told import MAY
from trainyard.parts.parts import TOLD
from trainyard.plan import EnvironmentPlan
from trainyard.reports import plan as report
from trainyard.reports import policy

ADDRESS = "gpu-oncall@example.com"
TOPIC = "arn:aws:sns:ap-northeast-2:123456789012:runs"
KEY = "arn:aws:kms:ap-northeast-2:123456789012:key/0123abcd-01ab-23cd-45ef-0123456789ab"
OWN, BROUGHT = (at("told", each) for each in ({"emails": [ADDRESS]}, {"topic_arn": TOPIC}))


@pytest.fixture(scope="module")
def own() -> Graph:
    return environment(OWN)


@pytest.fixture(scope="module")
def brought() -> Graph:
    return environment(BROUGHT)


def settings(graph: Graph) -> dict[str, Any]:
    return json.loads(graph["ConfigMap told-files"].inputs["data"]["settings.json"])


def test_the_setting_adds_its_own_objects_and_changes_nothing(own: Graph) -> None:
    before, after = json.loads(environment().golden()), json.loads(own.golden())
    assert [each for each in before if each not in after] == []
    added = {each["name"] for each in after if each not in before}
    assert len(added) == 8 and all(name.startswith("told") for name in added)


def test_addresses_subscribe_to_an_encrypted_topic_of_the_stack(own: Graph) -> None:
    topic = own["Topic told-topic"]
    assert topic.inputs["kmsMasterKeyId"] and topic.inputs["name"].startswith("dev-told-")
    reader = own[f"TopicSubscription told-{ADDRESS}"].inputs
    assert (reader["protocol"], reader["endpoint"]) == ("email", ADDRESS)
    [statement] = _published(own)
    assert settings(own)["topic"] == statement["Resource"] == "arn:aws:sns:::told-topic"


def test_a_topic_that_exists_is_published_to_and_not_made(brought: Graph) -> None:
    assert not brought.starting("aws:sns/") and settings(brought)["topic"] == TOPIC
    [statement] = _published(brought)
    assert (statement["Action"], statement["Resource"]) == ("sns:Publish", TOPIC)


def _published(graph: Graph) -> list[dict[str, Any]]:
    return json.loads(graph["RolePolicy told-publish"].inputs["policy"])["Statement"]


def test_its_role_may_use_the_key_of_the_environment_for_its_own_topic_only() -> None:
    key = at("kms_key_arn", KEY)
    graph = environment(OWN, key)
    publish, use = _published(graph)
    assert graph["Topic told-topic"].inputs["kmsMasterKeyId"] == KEY == use["Resource"]
    assert publish["Resource"] == settings(graph)["topic"]
    through = "sns.ap-northeast-2.amazonaws.com"
    assert use["Condition"] == {"StringEquals": {"kms:ViaService": through}}
    assert [each["Sid"] for each in _published(environment(BROUGHT, key))] == ["Publish"]
    assert "the topic of messages about runs" in TOLD.encrypts(_plan(OWN, key))


def _plan(*edits: Edit) -> Any:
    return TOLD.of(environment_plan(*edits))


def test_only_its_own_service_account_gets_the_role_and_its_pod_waits_for_it(own: Graph) -> None:
    trust = json.loads(own["Role told"].inputs["assumeRolePolicy"])
    limits = trust["Statement"][0]["Condition"]["StringEquals"]
    assert limits["aws:RequestTag/kubernetes-service-account"] == "trainyard-told"
    assert limits["aws:RequestTag/kubernetes-namespace"] == "trainyard-told"
    pod = own["Deployment told"]
    assert own.waits_for(pod, own["PodIdentityAssociation told"])
    assert own.waits_for(pod, own["RolePolicy told-publish"])


def test_it_reads_no_secret_and_writes_only_its_own_config_maps(own: Graph) -> None:
    rules = own["ClusterRole told-looks"].inputs["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert "secrets" not in {kind for rule in rules for kind in rule["resources"]}
    assert len(rules) == len(MAY)
    [kept] = own["Role told-remembers"].inputs["rules"]
    assert kept["resources"] == ["configmaps"]


def test_its_pod_has_its_files_and_what_they_import(own: Graph) -> None:
    files = own["ConfigMap told-files"].inputs["data"]
    ours = {"told.py", "message.py", "messages.py", "record.py", "hangs.py", "query.py"}
    assert ours <= files.keys() and not {"history.py", "repair.py", "sickness.py"} & files.keys()
    [container] = own["Deployment told"].inputs["spec"]["template"]["spec"]["containers"]
    assert container["command"][2].endswith("/told.py")
    assert sum(map(len, files.values())) < 2**20


def test_it_knows_what_a_node_of_each_pool_costs(own: Graph) -> None:
    prices = settings(own)["prices"]
    dollars, gpus = prices["g6e"]["g6e.48xlarge"]
    assert gpus == 8 and 10 < float(dollars) < 40 and settings(own)["as_of"] >= "2025"


def test_it_counts_at_the_prices_that_the_company_pays() -> None:
    prices = at("prices", {"discount_percent": 10, "savings_plan_percent": {"g6e": 50}})
    listed, own = (TOLD.of(environment_plan(OWN, *edits)) for edits in ((), (prices,)))
    assert listed and own
    usd, gpus = listed.prices["g6e"]["g6e.48xlarge"]
    assert own.prices["g6e"]["g6e.48xlarge"] == (str(Decimal(usd) * Decimal("0.45")), gpus)


@pytest.mark.parametrize(
    ("edits", "minutes"),
    [
        ((), 15),
        ((at("told.hung_minutes", 40),), 40),
        ((at("repair", {"hung_minutes": 30}),), 15),
        ((at("repair", {"hung_minutes": 10}),), 9),
        ((at("repair", {"hung_minutes": 1}),), 1),
        ((at("repair", {}),), 15),
    ],
)
def test_a_run_stands_still_before_repair_ends_its_pods(
    edits: tuple[Edit, ...], minutes: int
) -> None:
    assert _plan(OWN, *edits).hung_minutes == minutes


@pytest.mark.parametrize(
    ("edits", "path", "must"),
    [
        ((at("told", {}),), "told.emails", "must not be empty without topic_arn"),
        (
            (at("told", {"emails": [ADDRESS], "topic_arn": TOPIC}),),
            "told.emails",
            "must not be set beside topic_arn",
        ),
        ((at("told", {"emails": ["oncall"]}),), "told.emails[0]", "must be an e-mail address"),
        (
            (at("told", {"topic_arn": TOPIC.replace("ap-northeast-2", "us-east-1")}),),
            "told.topic_arn",
            "must be the ARN of an SNS topic in ap-northeast-2",
        ),
        (
            (at("told", {"topic_arn": f"{TOPIC}.fif"}),),
            "told.topic_arn",
            "must be the ARN of an SNS topic in ap-northeast-2",
        ),
        (
            (OWN, at("told.hung_minutes", 30), at("repair", {"hung_minutes": 30})),
            "told.hung_minutes",
            "must be less than repair.hung_minutes, 30",
        ),
        ((at("told", {"emails": [ADDRESS], "slack": "x"}),), "told.slack", "must"),
        ((at("told", {"emails": [ADDRESS] * 11}),), "told.emails", "must"),
    ],
)
def test_messages_that_reach_nobody_are_refused(
    edits: tuple[Edit, ...], path: str, must: str
) -> None:
    found = errors(*edits)
    assert [each for each in found if each.startswith(f"environment.{path}") and must in each], (
        found
    )


def test_a_fifo_topic_is_taken_here_and_not_for_alerts() -> None:
    fifo = f"{TOPIC}.fifo"
    assert errors(at("told", {"topic_arn": fifo})) == []
    assert errors(at("metrics", {"alerts": {"topic_arn": fifo}}))


def test_an_isolated_network_has_the_endpoint_of_sns() -> None:
    private = at("network.endpoints", "private")
    found = own_network(environment_plan(private, OWN)).endpoints
    without = own_network(environment_plan(private)).endpoints
    assert found and without and {*found.apis} - {*without.apis} == {"sns"}


def test_who_deploys_may_make_topics_of_the_stack_only() -> None:
    def statements(*edits: Edit) -> list[dict[str, Any]]:
        made = policy.policies(environment_plan(*edits))
        return [each for document in made.values() for each in document["Statement"]]

    [write] = [each for each in statements(OWN) if each["Sid"] == "WriteSns"]
    assert write["Resource"] == "arn:aws:sns:ap-northeast-2:*:dev-*"
    assert {"sns:CreateTopic", "sns:DeleteTopic", "sns:Subscribe"} <= {*write["Action"]}
    assert not [each for each in statements(BROUGHT) if "sns:" in json.dumps(each)]


def test_the_plan_says_who_is_told_and_what_that_costs() -> None:
    def said(*edits: Edit) -> str:
        made = environment_plan(*edits)
        assert isinstance(made, EnvironmentPlan)
        return " ".join(report.text(made).split())

    assert f"with {ADDRESS}: at most 1,000 e-mails a month are free" in said(OWN)
    assert f"is told to {TOPIC}" in said(BROUGHT)
    assert "is told to" not in said()


def test_the_rehearsal_implements_every_kind_of_it(own: Graph) -> None:
    made = [each.inputs for each in own.starting("kubernetes:")]
    assert all(kinds.of(inputs) for inputs in made if "kind" in inputs)


def test_its_namespace_is_no_namespace_for_jobs() -> None:
    [error] = errors(at("namespace", "trainyard-told"))
    assert "trainyard-told" in str(error)
