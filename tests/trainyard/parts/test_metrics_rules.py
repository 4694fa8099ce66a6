"""Which metrics cannot work."""

from __future__ import annotations

import pytest

from tests.support.stackfile import Edit, at, errors, planned
from tests.support.sweep import lines_not_reached
from trainyard.parts import metrics_rules

HUGE = at("pools.h100.max_nodes", 4000)
WRITE = "metrics.remote_write"
TOPIC = "arn:aws:sns:ap-northeast-2:123456789012:alerts"
REFUSED: dict[str, tuple[tuple[Edit, ...], str, str]] = {
    "a history that is longer than the disk": (
        (at("metrics.retention_days", 90), at("pools.h100.max_nodes", 256)),
        "metrics.retention_days",
        "must need at most 25 GiB, which the disk of a system node has for 283,000 series; got 90, which"
        " need 137 GiB. Fix: write 16, and set managed_prometheus or remote_write for more",
    ),
    "pools whose history of a day fits on no disk": (
        (at("metrics", {}), at("pools.h100.max_nodes", 8000)),
        "metrics.retention_days",
        "Fix: lower max_nodes of pools",
    ),
    "a Prometheus larger than half of a system node": (
        (at("metrics", {"retention_days": 1}), HUGE),
        "system_nodes.instance_type",
        "for Prometheus in half of a node, for 4,064,000 series; got m7i.xlarge, half of which has 8192"
        " MiB and 2 vCPUs. Fix: write m7i.8xlarge",
    ),
    "a Grafana for which half of a system node has no room": (
        (
            at("metrics", {"grafana": True, "retention_days": 1}),
            at("pools.h100.max_nodes", 512),
            at("system_nodes.instance_type", "c7i.xlarge"),
        ),
        "system_nodes.instance_type",
        "must have 5120 MiB of memory and 2.6 vCPUs for Prometheus and Grafana in half of a node",
    ),
    "a password in the address": (
        (at(WRITE, {"url": "https://me:hunter2@metrics.example.com/api/v1/write"}),),
        "metrics.remote_write.url",
        "must not contain a secret in clear; got a password in a URL, which is not shown. Fix: delete it here and"
        " revoke it, since files are committed; write the address without it",
    ),
    "a user name in the address": (
        (at(WRITE, {"url": "https://me@metrics.example.com/api/v1/write"}),),
        "metrics.remote_write.url",
        "must not contain a user name, a password or a key: the address stands in a ConfigMap; got a URL"
        " with one",
    ),
    "a key in the query of the address": (
        (at(WRITE, {"url": "https://metrics.example.com/push?db=a&token=b"}),),
        "metrics.remote_write.url",
        "must not contain a user name, a password or a key: the address stands in a ConfigMap; got a URL"
        " with one",
    ),
    "an address without encryption": (
        (at(WRITE, {"url": "http://metrics.example.com/api/v1/write"}),),
        "metrics.remote_write.url",
        "must be an address that takes samples: https:// with a host and a path; got"
        " http://metrics.example.com/api/v1/write. Fix: write such as https://metrics.example.com",
    ),
    "an address that is no e-mail address": (
        (at("metrics.alerts", {"emails": ["oncall"]}),),
        "metrics.alerts.emails[0]",
        "must be an e-mail address; got oncall. Fix: write such as gpu-oncall@example.com",
    ),
    "readers of a topic that another owns": (
        (at("metrics.alerts", {"emails": ["a@example.com"], "topic_arn": TOPIC}),),
        "metrics.alerts.emails",
        "must not be set beside topic_arn: the owner of a topic subscribes its readers",
    ),
    "a topic in another region": (
        (at("metrics.alerts", {"topic_arn": TOPIC.replace("ap-northeast-2", "us-east-1")}),),
        "metrics.alerts.topic_arn",
        "must be the ARN of a standard SNS topic in ap-northeast-2, where its publisher is",
    ),
    "no history": (
        (at("metrics.retention_days", 0),),
        "metrics.retention_days",
        "got 0",
    ),
    "a history that AWS does not keep": (
        (at("metrics", {"managed_prometheus": {"retention_days": 1096}}),),
        "metrics.managed_prometheus.retention_days",
        "got 1096",
    ),
    "a day that costs nothing": (
        (at("metrics", {"dollars_a_day": 0}),),
        "metrics.dollars_a_day",
        "got 0",
    ),
    "a namespace of the metrics' own": (
        (at("namespace", "trainyard-metrics"),),
        "namespace",
        "must not be a namespace of the system: kube-… or that of a chart; got trainyard-metrics",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused_where_it_stands(case: str) -> None:
    edits, path, says = REFUSED[case]
    found = [each for each in errors(*edits) if each.startswith(f"environment.{path}: ")]
    assert len(found) == 1 and says in found[0], errors(*edits)
    assert "hunter2" not in " ".join(errors(*edits))


def test_an_unknown_system_node_is_not_judged_by_its_size() -> None:
    edits = (
        at("metrics", {"retention_days": 1}),
        HUGE,
        at("system_nodes.instance_type", "x2idn.16xlarge"),
    )
    assert not [each for each in errors(*edits) if "Prometheus" in each]


def test_a_history_without_a_second_copy_is_a_warning() -> None:
    def warned(*edits: Edit) -> bool:
        texts = [each.text for each in planned(*edits).warnings]
        return any("another node begins without it" in text for text in texts)

    address = {"url": "https://metrics.example.com:9009/api/v1/write"}
    assert warned(at("metrics", {}))
    assert not warned() and not warned(at(WRITE, address))
    assert not warned(at("metrics", {"managed_prometheus": {}}))
    assert not [each for each in errors(at(WRITE, address)) if "metrics" in each]


def test_a_pool_without_types_has_no_price_and_is_no_traceback() -> None:
    edits = (at("metrics", {"dollars_a_day": 5}), at("pools.h100.instance_types", []))
    [error] = [each for each in errors(*edits) if "instance_types" in each]
    assert error.startswith("environment.pools.h100.instance_types: must")


def test_nodes_whose_price_is_not_known_are_a_warning() -> None:
    def warned(*edits: Edit) -> list[str]:
        found = planned(at("metrics", {"dollars_a_day": 500}), *edits).warnings
        return [each.text for each in found if each.path == "environment.metrics.dollars_a_day"]

    [said] = warned(at("pools.h100.instance_types", ["p5e.48xlarge"]))
    assert said == (
        "no price of ap-northeast-2 is known for nodes of h100, which the alert does not count"
    )
    [said] = warned(at("pools.h100.instance_types", ["p5.48xlarge", "p5e.48xlarge"]))
    assert "for nodes of h100-2 (p5e.48xlarge), which" in said
    assert warned() == []
    assert warned(at("pools.h100.capacity", "spot")) == [], "on demand is the most that spot costs"


def test_every_rule_has_a_case() -> None:
    edits = [case[0] for case in REFUSED.values()]
    missing = lines_not_reached([metrics_rules], lambda: [errors(*each) for each in edits])
    assert missing == []
