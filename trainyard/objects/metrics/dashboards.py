"""The dashboards of an environment, as the JSON that Grafana imports (its schema 39, Grafana 10 and
later).

Queries: queries.py. A dashboard is one entry of DASHBOARDS; each panel is the name of a query, and the
names of several are one panel.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from trainyard.objects.metrics.queries import QUERIES
from trainyard.plans.identity import digest
from trainyard.plans.jobs import Spec

WIDTH, HEIGHT, COLUMNS = 12, 8, 24
SMALL, LOW = 6, 4
"""Sizes of a panel with one number, in the units of Grafana's grid of 24 columns."""
SOURCE = {"type": "prometheus", "uid": "${source}"}
"""The data source that whoever looks has chosen."""


@dataclass(frozen=True, kw_only=True)
class Variable:
    """Variable that whoever looks chooses: a label, and the metric whose values of it are
    offered."""

    label: str
    metric: str
    within: str = ""
    """Matchers of the metric, which may use variables before it."""


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """One page."""

    name: str
    title: str
    says: str
    """Question that the dashboard answers."""
    numbers: tuple[str, ...]
    """Queries whose last value is shown."""
    charts: tuple[tuple[str, ...], ...]
    """Queries over time, those of one panel together."""
    variables: tuple[Variable, ...] = ()
    followed: tuple[tuple[str, ...], ...] = ()
    """Charts that need a history which follows what runs print."""
    queues: bool = False
    """The dashboard needs queues."""

    @property
    def matchers(self) -> str:
        """The chosen values, for every query of the page."""
        return ",".join(f'{each.label}="${each.label}"' for each in self.variables)


_RUN = "DCGM_FI_PROF_SM_ACTIVE"
DASHBOARDS: tuple[Dashboard, ...] = (
    Dashboard(
        name="fleet",
        title="Fleet",
        says="What the GPUs do, and what they cost",
        numbers=("gpus", "gpus held", "gpus busy", "pods without a node"),
        charts=(
            ("gpus", "gpus held", "gpus busy"),
            ("pool dollars",),
            ("pool nodes", "pool limit"),
            ("launches", "disruptions"),
            ("launch errors",),
            ("gpu power",),
            ("gpu temperature",),
            ("xids", "gpu memory errors"),
            ("efa sent",),
            ("efa retransmissions",),
        ),
    ),
    Dashboard(
        name="team",
        title="Team",
        says="What a team uses of its share, and how long its jobs wait",
        numbers=("quota", "quota used", "admitted"),
        charts=(("quota", "quota used"), ("waiting",), ("wait",), ("evictions",)),
        variables=(Variable(label="cluster_queue", metric="kueue_cluster_queue_nominal_quota"),),
        queues=True,
    ),
    Dashboard(
        name="run",
        title="Run",
        says="What each rank of a run does, and which one is slower than the others",
        numbers=("run busiest", "run busiest rank", "run idlest rank"),
        charts=(
            ("run tensor",),
            ("run sm",),
            ("run dram",),
            ("run power",),
            ("run clock",),
            ("run nvlink",),
            ("run efa",),
            ("run gpu memory",),
            ("run memory",),
            ("run cpu",),
        ),
        followed=(
            ("run goodput", "run planned goodput"),
            ("run unsaved", "run interval"),
            ("run step seconds",),
            ("run step",),
            ("run restarts",),
        ),
        variables=(
            Variable(label="namespace", metric=_RUN, within='run!=""'),
            Variable(label="run", metric=_RUN, within='namespace="$namespace"'),
        ),
    ),
    Dashboard(
        name="platform",
        title="Platform",
        says="Whether controllers, API server and file systems do their work",
        numbers=("series", "history"),
        charts=(
            ("programs",),
            ("exporters",),
            ("reconcile errors",),
            ("work waiting",),
            ("api requests",),
            ("api errors",),
            ("program memory",),
            ("store fill",),
            ("legacy restarts",),
        ),
    ),
)


def grafana(dashboard: Dashboard, stack: str, *, follows: bool = True) -> str:
    """The page as Grafana imports it. `stack`: which the title names. `follows`: there is a history that
    follows what runs print."""
    charts = (*(dashboard.followed if follows else ()), *dashboard.charts)
    panels = [*_numbers(dashboard), *_charts(dashboard, charts)]
    return json.dumps(
        {
            "uid": _uid(stack, dashboard.name),
            "title": f"{dashboard.title} of {stack}",
            "description": dashboard.says,
            "tags": ["trainyard", stack],
            "schemaVersion": 39,
            "editable": False,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "templating": {"list": [_source(), *map(_variable, dashboard.variables)]},
            "panels": [
                {**panel, "id": number, "datasource": SOURCE}
                for number, panel in enumerate(panels, 1)
            ],
        },
        indent=1,
    )


def pages(stack: str, *, queues: bool, follows: bool) -> dict[str, str]:
    """Name → page, of those that the environment has data for."""
    return {
        page.name: grafana(page, stack, follows=follows) + "\n"
        for page in DASHBOARDS
        if queues or not page.queues
    }


def _uid(stack: str, page: str) -> str:
    """Grafana takes 40 characters, and no two pages with the same ones."""
    whole = f"trainyard-{stack}-{page}"
    return whole if len(whole) <= 40 else f"{whole[:31]}-{digest([whole])[:8]}"


def _source() -> Spec:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _variable(variable: Variable) -> Spec:
    asked = f"label_values({variable.metric}{{{variable.within}}}, {variable.label})"
    return {
        "name": variable.label,
        "type": "query",
        "datasource": SOURCE,
        "definition": asked,
        "query": {"query": asked, "refId": variable.label},
        "refresh": 2,  # whenever the time range changes
        "sort": 1,
    }


def _numbers(dashboard: Dashboard) -> Iterable[Spec]:
    for number, name in enumerate(dashboard.numbers):
        yield {
            **_panel((name,), dashboard, instant=True),
            "type": "stat",
            "gridPos": {"x": number * SMALL, "y": 0, "w": SMALL, "h": LOW},
            "options": {"reduceOptions": {"calcs": ["lastNotNull"]}},
        }


def _charts(dashboard: Dashboard, charts: tuple[tuple[str, ...], ...]) -> Iterable[Spec]:
    across = COLUMNS // WIDTH
    for number, names in enumerate(charts):
        row, column = divmod(number, across)
        yield {
            **_panel(names, dashboard),
            "type": "timeseries",
            "gridPos": {
                "x": column * WIDTH,
                "y": LOW + row * HEIGHT,
                "w": WIDTH,
                "h": HEIGHT,
            },
        }


def _panel(names: tuple[str, ...], dashboard: Dashboard, *, instant: bool = False) -> Spec:
    asked = [QUERIES[name] for name in names]
    several = len(asked) > 1
    return {
        "title": " · ".join(each.title for each in asked),
        "fieldConfig": {"defaults": {"unit": asked[0].unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": SOURCE,
                "expr": each.where(dashboard.matchers),
                "instant": instant,
                "legendFormat": " ".join(filter(None, (each.title if several else "", each.legend)))
                or each.title,
            }
            for number, each in enumerate(asked)
        ],
    }
