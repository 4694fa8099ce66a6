"""The stand-in for Grafana, on the files of the graph: what it refuses, and what it shows to whom."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import pytest

from rehearsal.kubelet import images
from tests.support.grafana import Files, laid_out, start
from tests.support.patience import PATIENCE, until
from tests.support.ports import free_port

SOURCES, PROVIDERS = (
    f"provisioning/{kind}/trainyard.yaml" for kind in ("datasources", "dashboards")
)


class Prometheus(BaseHTTPRequestHandler):
    """Knows one series, and no query that is not one word."""

    def do_GET(self) -> None:
        good = "%28" not in self.path
        said: dict[str, Any] = {"data": {"result": [{"metric": {}, "value": [0, "1"]}]}}
        data = json.dumps(said if good else {"error": "parse error"}).encode()
        self.send_response(200 if good else 400)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def prometheus() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Prometheus)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def served(tmp_path: Path, prometheus: ThreadingHTTPServer) -> Iterator[str]:
    """The address of one that asks a Prometheus."""
    folder = laid_out(tmp_path, f"http://127.0.0.1:{prometheus.server_port}")
    process = start(folder, port := free_port())
    try:
        assert until(lambda: status(f"http://127.0.0.1:{port}/healthz") == 200)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()


def status(url: str, data: bytes | None = None, **headers: str) -> int:
    """0: nobody listens."""
    try:
        asked = urllib.request.Request(url, data, headers)
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return answer.status
    except HTTPError as error:
        return error.code
    except URLError:
        return 0


def answer(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(url, data, timeout=PATIENCE) as found:
        return json.load(found)


def test_somebody_without_a_name_sees_the_pages_and_nobody_signs_in(served: str) -> None:
    found = answer(f"{served}/api/search?type=dash-db")
    assert [page["title"] for page in found] == [
        f"{title} of dev" for title in ("Fleet", "Platform", "Run", "Team")
    ]
    page = answer(f"{served}/api/dashboards/uid/{found[0]['uid']}")["dashboard"]
    assert page["title"] == "Fleet of dev" and page["panels"]
    assert status(f"{served}/api/search", Authorization="Basic YWRtaW46YWRtaW4=") == 401
    assert status(f"{served}/api/admin/users", b"{}") == 403


def test_a_query_is_asked_of_the_data_source_and_its_error_is_told(served: str) -> None:
    source = {"type": "prometheus", "uid": "prometheus"}
    asked = [
        {"refId": "A", "expr": "up", "instant": True, "datasource": source},
        {"refId": "B", "expr": "up(", "intervalMs": 15000, "datasource": source},
        {"refId": "C", "expr": "up", "datasource": {**source, "uid": "loki"}},
    ]
    found = answer(f"{served}/api/ds/query", {"queries": asked, "from": "0", "to": "60000"})[
        "results"
    ]
    assert found["A"]["frames"] and found["A"]["status"] == 200
    assert found["B"] == {"status": 400, "error": "parse error"}
    assert found["C"]["status"] == 404


def test_a_question_in_chunks_is_read_as_the_api_server_sends_it(served: str) -> None:
    source = {"type": "prometheus", "uid": "prometheus"}
    asked = {"refId": "A", "expr": "up", "instant": True, "datasource": source}
    body = json.dumps({"queries": [asked], "from": "0", "to": "60000"}).encode()
    parts = iter([body[:7], body[7:]])
    request = urllib.request.Request(f"{served}/api/ds/query", parts)  # no length: in chunks
    with urllib.request.urlopen(request, timeout=PATIENCE) as answered:
        assert json.load(answered)["results"]["A"]["status"] == 200


def test_it_is_ready_only_while_its_data_source_answers(
    served: str, prometheus: ThreadingHTTPServer
) -> None:
    assert status(f"{served}/api/health") == 200
    prometheus.shutdown()
    prometheus.server_close()
    assert status(f"{served}/api/health") == 503
    assert status(f"{served}/healthz") == 200, "another Prometheus is another answer, no other pod"


def _replaced(path: str, old: str, new: str) -> Callable[[Files], object]:
    def change(files: Files) -> None:
        assert old in files[path]
        files[path] = files[path].replace(old, new)

    return change


def _twice(files: Files) -> None:
    files["dashboards/copy.json"] = files["dashboards/fleet.json"]


REFUSED: dict[str, tuple[Callable[[Files], object], str]] = {
    "a data source of a kind that it lacks": (
        _replaced(SOURCES, '"type": "prometheus"', '"type": "promtheus"'),
        "Could not find plugin definition for data source promtheus",
    ),
    "a data source without a uid": (
        _replaced(SOURCES, '"uid": "prometheus"', '"uid": ""'),
        "data source: the uid '' is missing",
    ),
    "no default data source": (
        _replaced(SOURCES, '"isDefault": true', '"isDefault": false'),
        "Only one datasource",
    ),
    "a file of another version": (
        _replaced(PROVIDERS, '"apiVersion": 1', '"apiVersion": 0'),
        "the provisioning config is outdated",
    ),
    "pages in a folder that is not there": (
        _replaced(PROVIDERS, "/dashboards", "/pages"),
        "Cannot read directory",
    ),
    "a page that is no JSON": (
        lambda files: files.update({"dashboards/fleet.json": "{"}),
        "failed to load",
    ),
    "a page without a uid": (
        _replaced("dashboards/fleet.json", '"uid": "trainyard-dev-fleet"', '"uid": null'),
        "dashboard: the uid '' is missing",
    ),
    "two pages with one uid": (_twice, "'trainyard-dev-fleet' is used more than once"),
    "a first page that is not there": (
        _replaced("grafana.ini", "fleet.json", "home.json"),
        "home.json",
    ),
    "plugins that update themselves on a root that cannot be written": (
        _replaced("grafana.ini", "preinstall_disabled = true", "preinstall_disabled = false"),
        "Failed to install plugin pluginId=prometheus",
    ),
    "settings that are none": (lambda files: files.update({"grafana.ini": "["}), "failed to parse"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_grafana_refuses_ends_it_and_is_said(case: str, tmp_path: Path) -> None:
    change, says = REFUSED[case]
    process = start(laid_out(tmp_path, "http://127.0.0.1:1", change), free_port())
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and says in said, said


def test_without_anonymous_access_nobody_gets_in(
    tmp_path: Path, prometheus: ThreadingHTTPServer
) -> None:
    url = f"http://127.0.0.1:{prometheus.server_port}"
    closed = _replaced("grafana.ini", "enabled = true\norg_role", "enabled = false\norg_role")
    process = start(laid_out(tmp_path, url, closed), port := free_port())
    try:
        assert until(lambda: status(f"http://127.0.0.1:{port}/api/health") == 200)
        assert status(f"http://127.0.0.1:{port}/api/search") == 401
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["--collector.loadavg", "--web.listen-address=:{}"], {}),
        ([], {"DCGM_EXPORTER_LISTEN": ":{}"}),
    ],
    ids=["nodes", "gpus"],
)
def test_an_exporter_answers_at_the_port_of_its_pod(
    words: list[str], variables: dict[str, str]
) -> None:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-S", images.STAND_INS / "exporter.py", *(w.format(port) for w in words)],
        env=os.environ | {name: value.format(port) for name, value in variables.items()},
    )
    try:
        assert until(lambda: status(f"http://127.0.0.1:{port}/metrics") == 200)
    finally:
        process.kill()
        process.wait()


def test_the_pod_of_the_image_runs_it() -> None:
    for prefix in ("docker.io/", "111122223333.dkr.ecr.eu-west-1.amazonaws.com/mirror/docker.io/"):
        image = f"{prefix}grafana/grafana:13.2.3@sha256:{'0' * 64}"
        assert images.entrypoint(image) == [f"{images.STAND_INS_AT}/grafana.py"]
    assert images.entrypoint("docker.io/grafana/grafana-image-renderer:4") == []
