"""Queries, alerts and dashboards: every metric is one that is served, and every name is used."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.support.metrics import RECORDED, metrics_plan, names_in
from tests.support.recording import CHECKOUT
from trainyard.catalog.logs.xids import XID_CLASSES
from trainyard.objects.metrics.alerts import alerts
from trainyard.objects.metrics.dashboards import COLUMNS, DASHBOARDS, Dashboard, grafana
from trainyard.objects.metrics.metrics import GPU_COUNTERS, MetricsPlan
from trainyard.objects.metrics.queries import QUERIES

OF_PROMETHEUS = {"up"}


@pytest.fixture(scope="module")
def plan() -> MetricsPlan:
    return metrics_plan()


def served() -> set[str]:
    """The metrics in what exporters and controllers were seen to serve, and the fields that the
    exporter of GPUs is told to serve."""
    fields = {row.partition(",")[0] for row in GPU_COUNTERS.splitlines()}
    return fields | {
        name
        for file in RECORDED.glob("*.prom")
        for name in re.findall(r"^([a-zA-Z_:][\w:]*)[{ ]", file.read_text(), re.MULTILINE)
    }


@pytest.mark.parametrize("name", QUERIES)
def test_every_metric_of_a_query_is_served(name: str) -> None:
    found = names_in(QUERIES[name].promql) - OF_PROMETHEUS
    assert found or "up{" in QUERIES[name].promql
    assert found - served() == set()


def test_a_metric_that_nobody_serves_would_be_found() -> None:
    assert names_in('max(DCGM_FI_(A|B)_C{a="b_c"}) / sum by (cluster_queue) (no_such)') == {
        "DCGM_FI_A_C",
        "DCGM_FI_B_C",
        "no_such",
    }


def test_every_query_is_in_a_dashboard_or_an_alert(plan: MetricsPlan) -> None:
    shown = {
        name
        for page in DASHBOARDS
        for panel in (page.numbers, *page.charts, *page.followed)
        for name in panel
    }
    expressions = " ".join(alert.expression for alert in alerts(plan))
    unused = [
        name
        for name, query in QUERIES.items()
        if name not in shown and query.promql.partition("WHERE")[0] not in expressions
    ]
    assert unused == []


def test_every_alert_says_what_is_wrong_and_a_way_out(plan: MetricsPlan) -> None:
    found = list(alerts(plan))
    assert len({alert.name for alert in found}) == len(found) > 10
    for alert in found:
        assert alert.severity in ("critical", "warning", "info"), alert.name
        assert len(alert.says) > 20 and alert.fix, alert.name


def test_the_document_lists_every_alert(plan: MetricsPlan) -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \|", (CHECKOUT / "docs/metrics.md").read_text(), re.MULTILINE
    )
    assert rows == [(alert.name, alert.severity) for alert in alerts(plan)]


def test_an_alert_uses_only_labels_that_its_query_keeps(plan: MetricsPlan) -> None:
    for alert in alerts(plan):
        kept = " ".join(re.findall(r"by \(([^)]*)\)", alert.expression)).replace(",", " ").split()
        assert {*re.findall(r"\$labels\.(\w+)", f"{alert.says} {alert.fix}")} <= {*kept}, alert.name


def test_an_xid_has_one_consequence() -> None:
    listed = [xid for kind in XID_CLASSES for xid in kind.xids]
    assert len({*listed}) == len(listed)


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.name)
def test_a_dashboard_is_one_that_grafana_imports(page: Dashboard) -> None:
    made: dict[str, Any] = json.loads(grafana(page, "dev"))
    assert len(made["uid"]) <= 40 and made["schemaVersion"] == 39
    ids = [panel["id"] for panel in made["panels"]]
    assert len({*ids}) == len(ids)
    variables = {each["name"] for each in made["templating"]["list"]}
    used = {*re.findall(r"\$\{?(\w+)", json.dumps(made))}
    assert used <= variables | {"source"} and "source" in variables
    for panel in made["panels"]:
        assert panel["type"] in ("stat", "timeseries") and panel["targets"]
        names = [target["refId"] for target in panel["targets"]]
        assert len({*names}) == len(names), "Grafana tells queries of a panel apart by refId"
        assert panel["datasource"] == {"type": "prometheus", "uid": "${source}"}


@pytest.mark.parametrize("stack", ["dev", "training-of-the-large-language-models"])
def test_each_page_has_a_uid_of_its_own(stack: str) -> None:
    """Of two pages with one uid Grafana shows neither (provisioning/dashboards)."""
    uids = [json.loads(grafana(page, stack))["uid"] for page in DASHBOARDS]
    assert len({*uids}) == len(uids) and all(len(uid) <= 40 for uid in uids)


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.name)
def test_no_panel_lies_on_another(page: Dashboard) -> None:
    places = [panel["gridPos"] for panel in json.loads(grafana(page, "dev"))["panels"]]
    for one, two in combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= two["x"]
            or two["x"] + two["w"] <= one["x"]
            or one["y"] + one["h"] <= two["y"]
            or two["y"] + two["h"] <= one["y"]
        )
        assert apart, (one, two)
    assert all(place["x"] + place["w"] <= COLUMNS for place in places)


def test_what_was_recorded_has_its_source() -> None:
    files = [*RECORDED.glob("*.prom")]
    assert files
    for file in files:
        assert Path(file).read_text().startswith("# Source: "), file.name
