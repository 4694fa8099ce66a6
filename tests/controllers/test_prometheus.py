"""Prometheus itself, with the program's relabeling, on what exporters serve: the run and the rank of a
GPU, and every query of the run's page."""

from __future__ import annotations

import json
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from rehearsal import paths
from tests.support.grafana import laid_out, panels, start
from tests.support.metrics import RECORDED, metrics_plan
from tests.support.patience import PATIENCE, until
from tests.support.ports import free_port
from trainyard.objects.metrics.dashboards import DASHBOARDS
from trainyard.objects.metrics.metrics import prometheus_config
from trainyard.objects.metrics.queries import query

PROGRAM = paths.BIN / "prometheus"
pytestmark = [
    pytest.mark.apart,  # it takes 20 minutes to build
    pytest.mark.skipif(
        not PROGRAM.exists(),
        reason="needs prometheus: `python -m rehearsal build --also prometheus` builds it",
    ),
]
TARGETS = ("gpus", "nodes", "efa", "containers", "trainyard-history")


class Files(SimpleHTTPRequestHandler):
    """The recorded files, as an exporter serves its own."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, directory=str(RECORDED))

    def guess_type(self, path: Any) -> str:
        return "text/plain; version=0.0.4"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a Prometheus that asks the recorded files."""
    folder: Path = tmp_path_factory.mktemp("prometheus")
    served = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    (folder / "prometheus.yml").write_text(json.dumps(_config(served.server_port)))
    free = free_port()
    command = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        str(PROGRAM),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{free}",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            assert until(lambda: all(_value(free, f'up{{job="{job}"}}') for job in TARGETS))
            yield free
        finally:
            process.kill()
            process.wait()
            served.shutdown()


def _config(served: int) -> Any:
    """The program's own, which finds its targets by address instead of by pod."""
    whole = json.loads(prometheus_config(metrics_plan()))
    found = {each["job_name"]: each for each in whole["scrape_configs"]}
    return {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [
            {
                "job_name": job,
                "metrics_path": f"/{job}.prom",
                "static_configs": [
                    {"targets": [f"127.0.0.1:{served}"], "labels": {"node": "n0", "pool": "h100"}}
                ],
                "metric_relabel_configs": found[job].get("metric_relabel_configs", []),
            }
            for job in TARGETS
        ],
    }


def _ask(port: int, promql: str) -> list[Any]:
    url = f"http://127.0.0.1:{port}/api/v1/query?query={quote(promql)}"
    try:
        return json.loads(urllib.request.urlopen(url, timeout=PATIENCE).read())["data"]["result"]
    except OSError:
        return []


def _value(port: int, promql: str) -> float:
    found = _ask(port, promql)
    return float(found[0]["value"][1]) if found else 0


def test_a_gpu_has_the_run_and_the_rank_of_the_pod_that_holds_it(port: int) -> None:
    found = {
        each["metric"].get("run", ""): each["metric"].get("rank", "")
        for each in _ask(port, "DCGM_FI_PROF_SM_ACTIVE")
    }
    assert found == {"t5-large": "node-1", "resnet": "worker-3", "": ""}


def test_of_containers_only_what_queries_use_is_kept(port: int) -> None:
    names = {each["metric"]["__name__"] for each in _ask(port, '{job="containers",pod!=""}')}
    assert names == {
        "container_cpu_usage_seconds_total",
        "container_memory_working_set_bytes",
    }
    [memory] = _ask(port, "container_memory_working_set_bytes")
    assert "id" not in memory["metric"] and memory["metric"]["run"] == "t5-large"


def test_every_query_of_a_run_finds_its_series(port: int) -> None:
    [page] = [each for each in DASHBOARDS if each.name == "run"]
    chosen = 'namespace="training",run="t5-large"'
    for name in {name for panel in (page.numbers, *page.charts) for name in panel}:
        assert until(lambda name=name: bool(_ask(port, query(name, chosen)))), name


def test_every_query_of_what_a_run_prints_finds_its_series(port: int) -> None:
    [page] = [each for each in DASHBOARDS if each.name == "run"]
    chosen = 'namespace="training",run="t5"'
    for name in {name for panel in page.followed for name in panel}:
        assert until(lambda name=name: bool(_ask(port, query(name, chosen)))), name
    assert _value(port, query("run goodput", chosen)) == 0.96


def test_the_gpus_of_the_fleet_are_counted(port: int) -> None:
    assert [_value(port, query(name)) for name in ("gpus", "gpus held", "gpus busy")] == [3, 2, 2]
    [xid] = _ask(port, query("xids"))
    assert (xid["metric"]["xid"], xid["metric"]["node"], xid["metric"]["gpu"]) == ("79", "n0", "1")


def test_the_fill_of_lustre_is_that_of_its_mounts(port: int) -> None:
    [fill] = _ask(port, query("store fill"))
    assert fill["metric"]["device"] == "172.31.4.2@tcp:/abcdefgh"
    assert float(fill["value"][1]) == pytest.approx(1 - 3.1 / 4.8)


def test_every_panel_of_grafana_is_answered(port: int, tmp_path: Path) -> None:
    """By its stand-in, from the files of the graph, as a browser asks."""
    url = f"http://127.0.0.1:{port}"
    process = start(laid_out(tmp_path, url), free := free_port())

    def ask(path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{free}/api/{path}", data) as answer:
            return json.load(answer)

    def ready() -> bool:
        try:
            return ask("health", None)["database"] == "ok"
        except OSError:
            return False

    try:
        assert until(ready)
        found = [*panels(ask)]
    finally:
        process.kill()
        process.communicate()
    assert [each for each in found if each[2]["status"] != 200] == []
    shown = {(page, panel) for page, panel, answer in found if answer["frames"]}
    assert {
        ("Fleet of dev", "GPUs that compute"),
        ("Run of dev", "SMs at work"),
        ("Platform of dev", "Fill of Lustre"),
    } <= shown
