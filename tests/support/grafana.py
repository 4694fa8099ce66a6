"""The stand-in for Grafana with the files of an environment, and what a browser asks of it to show its
pages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rehearsal.kubelet import images
from trainyard.objects.metrics import grafana
from trainyard.objects.metrics.dashboards import pages

PROGRAM = images.STAND_INS / "grafana.py"
Files = dict[str, str]
"""Path below Grafana's folder → text."""

SOURCE = "prometheus"
"""Uid of the data source that a page chooses by itself: the only one."""
SPAN_SECONDS, STEP_SECONDS = 600, 30
Ask = Callable[[str, Any], Any]
"""The answer at a path below /api, to a body or to none."""


def laid_out(folder: Path, url: str, change: Callable[[Files], object] = lambda _: None) -> Path:
    """The files of an environment, as its pod has them."""
    files = grafana.files(pages("dev", queues=True, follows=True))
    files = {path: text.replace(grafana.SOURCE, url) for path, text in files.items()}
    change(files)
    for path, text in files.items():
        (file := folder / path).parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace(grafana.FOLDER, str(folder)))
    return folder


def start(folder: Path, port: int) -> subprocess.Popen[str]:
    environment = {"STAND_IN_GRAFANA": str(folder), "STAND_IN_GRAFANA_DATA": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-S", str(PROGRAM)],
        env=os.environ | environment | {"GF_SERVER_HTTP_PORT": str(port)},
        stdout=subprocess.PIPE,
        text=True,
    )


def panels(ask: Ask) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Title of a page, title of a panel, and the answer to each of the panel's queries."""
    now = int(time.time() * 1000)
    times = {"from": str(now - SPAN_SECONDS * 1000), "to": str(now)}
    for each in ask("search", None):
        page = ask(f"dashboards/uid/{each['uid']}", None)["dashboard"]
        values = _chosen(ask, page["templating"]["list"])
        for panel in page["panels"]:
            targets = json.loads(json.dumps(panel["targets"]).replace("${source}", SOURCE))
            asked = [
                {**one, "expr": _filled(one["expr"], values), "intervalMs": STEP_SECONDS * 1000}
                for one in targets
            ]
            for found in ask("ds/query", {"queries": asked, **times})["results"].values():
                yield page["title"], panel["title"], found


def _chosen(ask: Ask, variables: list[dict[str, Any]]) -> dict[str, str]:
    """The first value of each variable, which may use those before it; "" where it has none yet."""
    values: dict[str, str] = {}
    for each in variables:
        if found := re.fullmatch(r"label_values\((.*), (\w+)\)", each.get("definition", "")):
            series, label = quote(_filled(found[1], values)), found[2]
            path = f"datasources/uid/{SOURCE}/resources/api/v1/label/{label}/values"
            offered = ask(f"{path}?match[]={series}", None)["data"]
            values[each["name"]] = next(iter(offered), "")
    return values


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"${name}", value)
    return text
