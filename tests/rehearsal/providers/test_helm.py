"""Helm releases of the kubernetes plugin, through the real helm against a real API server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from development import releases
from rehearsal import paths
from rehearsal.providers.call import Call
from rehearsal.providers.kubernetes import helm
from rehearsal.providers.kubernetes.provider import Kubernetes
from rehearsal.providers.problems import Invalid, NotReady, Refused
from rehearsal.providers.wire import UNKNOWN
from tests.support.patience import until

if TYPE_CHECKING:
    from api_server import ApiServer

pytest_plugins = ("tests.rehearsal.api_server",)
pytestmark = pytest.mark.skipif(
    not (shutil.which("helm") or (paths.BIN / "helm").exists()), reason="needs helm"
)
SETTINGS = """apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}", namespace: "{{ .Release.Namespace }}"}
data: {size: "{{ .Values.size }}", color: "{{ .Values.color }}"}
"""
WORKLOAD = """{{ if .Values.hangs }}apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}", namespace: "{{ .Release.Namespace }}"}
spec:
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}
{{ end }}"""


def call(name: str = "it", **details: Any) -> Call:
    return Call(urn=f"urn:pulumi:dev::project::{helm.TYPE}::{name}", **details)


@pytest.fixture
def plugin(api_server: ApiServer) -> Kubernetes:
    return configured(api_server)


def configured(api_server: ApiServer, **options: str) -> Kubernetes:
    made = Kubernetes()
    made.configure({"kubeconfig": api_server.kubeconfig(), **options})
    return made


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart of one ConfigMap, and of a Deployment that never gets ready where there are no
    nodes."""
    folder = tmp_path / "chart"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text(
        "apiVersion: v2\nname: demo\nversion: 1.0.0\nappVersion: v9\n"
    )
    (folder / "values.yaml").write_text("size: 1\ncolor: red\nhangs: false\n")
    (folder / "templates/settings.yaml").write_text(SETTINGS)
    (folder / "templates/workload.yaml").write_text(WORKLOAD)
    return folder


def release(chart: Path, **more: Any) -> dict[str, Any]:
    return {"chart": str(chart), "name": f"r-{uuid.uuid4().hex[:6]}", "namespace": "default"} | more


def checked(
    plugin: Kubernetes, inputs: dict[str, Any], old: dict[str, Any] | None = None
) -> dict[str, Any]:
    return plugin.check(call(), old or {}, inputs)


def installed(
    plugin: Kubernetes, inputs: dict[str, Any], **details: Any
) -> tuple[str, dict[str, Any]]:
    return plugin.create(call(**details), checked(plugin, inputs))


def settings(api_server: ApiServer, id_: str) -> dict[str, Any]:
    """The data of the release's ConfigMap, {} where there is none."""
    space, name = id_.split("/")
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": space}}
    return (api_server.admin.get(obj) or {}).get("data", {})


# Inputs


def test_the_version_is_that_of_the_chart_and_defaults_are_helm_s(plugin, chart):
    inputs = checked(plugin, {"chart": str(chart), "skipCrds": False})
    assert inputs["name"].startswith("it-") and inputs["namespace"] == "default"
    assert inputs["version"] == "1.0.0" and inputs["timeout"] == 300 and "skipCrds" not in inputs
    assert checked(plugin, {"chart": str(chart)}, inputs)["name"] == inputs["name"]


def test_a_chart_that_cannot_be_found_fails_the_check(plugin, tmp_path):
    with pytest.raises(Invalid, match="check the chart name and repository configuration"):
        checked(plugin, {"chart": str(tmp_path / "none")})


def test_unknown_inputs_are_not_looked_into(plugin, chart):
    inputs = checked(plugin, {"chart": str(chart), "values": {"size": UNKNOWN}})
    assert inputs["values"] == {"size": UNKNOWN} and "version" not in inputs
    assert plugin.create(call(preview=True), inputs)[1]["status"] == UNKNOWN


def test_options_nobody_implements_are_refused_by_name(plugin, chart):
    with pytest.raises(Invalid, match="atomic"):
        checked(plugin, release(chart, atomic=True))
    with pytest.raises(Invalid, match="password"):
        checked(plugin, release(chart, repositoryOpts={"repo": "https://charts", "password": "x"}))


# The life of a release


def test_a_release_is_installed_upgraded_and_uninstalled(api_server: ApiServer, plugin, chart):
    inputs = checked(plugin, release(chart, values={"size": 2, "nested": {"a": 1}}))
    id_, state = plugin.create(call(), inputs)
    assert settings(api_server, id_) == {"size": "2", "color": "red"}
    assert state["status"] == {
        "name": inputs["name"],
        "namespace": "default",
        "revision": 1,
        "status": "deployed",
        "chart": "demo",
        "version": "1.0.0",
        "appVersion": "v9",
    }
    assert state["resourceNames"] == {"ConfigMap/v1": [id_]}
    assert not plugin.diff(call(id=id_), inputs, inputs, state).changes

    new = inputs | {"values": {"color": "blue"}}
    changed = plugin.diff(call(id=id_), inputs, new, state).changes
    assert changed == {"values.color": "add", "values.size": "delete", "values.nested": "delete"}
    after = plugin.update(call(id=id_), inputs, new, state)
    assert (
        settings(api_server, id_) == {"size": "1", "color": "blue"}
        and after["status"]["revision"] == 2
    )

    plugin.delete(call(id=id_), after)
    assert not settings(api_server, id_) and plugin.read(call(id=id_), inputs, after) is None


def test_a_release_goes_to_a_namespace_it_makes(api_server: ApiServer, plugin, chart):
    inputs = release(chart, namespace=f"new-{uuid.uuid4().hex[:6]}", createNamespace=True)
    id_, _ = installed(plugin, inputs)
    assert settings(api_server, id_)


def test_what_is_nobodys_is_taken_only_where_the_release_says_so(
    api_server: ApiServer, plugin, chart
):
    inputs = release(chart)
    api_server.admin.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "data": {"size": "0"},
            "metadata": {"name": inputs["name"], "namespace": "default"},
        },
        manager="nobody",
    )
    with pytest.raises(Refused, match="invalid ownership metadata"):
        installed(plugin, inputs)
    id_, _ = installed(plugin, inputs | {"takeOwnership": True})
    assert settings(api_server, id_) == {"size": "1", "color": "red"}


def test_another_name_or_namespace_needs_another_release(plugin, chart):
    old = checked(plugin, release(chart))
    found = plugin.diff(call(id="default/x"), old, old | {"namespace": "other"}, old)
    assert found.replaces == {"namespace"} and not found.delete_before_replace


def test_a_chart_with_other_contents_but_the_same_version_is_no_difference(plugin, chart):
    inputs = release(chart)
    old = checked(plugin, inputs)
    (chart / "values.yaml").write_text("size: 7\n")
    assert not plugin.diff(call(id="default/x"), old, checked(plugin, inputs, old), old).changes
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: demo\nversion: 1.0.1\n")
    assert plugin.diff(call(id="default/x"), old, checked(plugin, inputs, old), old).changes == {
        "version": "update"
    }


def test_a_name_in_use_is_refused(plugin, chart):
    inputs = release(chart)
    installed(plugin, inputs)
    with pytest.raises(Refused, match="cannot re-use a name that is still in use") as caught:
        installed(plugin, inputs)
    assert not isinstance(caught.value, NotReady)


def test_a_release_that_does_not_get_ready_stays_in_the_state_as_failed(
    api_server: ApiServer, plugin, chart
):
    inputs = checked(plugin, release(chart, timeout=1, values={"hangs": True}))
    with pytest.raises(
        NotReady, match="was created, but failed to initialize completely"
    ) as caught:
        plugin.create(call(), inputs)
    assert caught.value.state["status"]["status"] == "failed"
    # `make up` says it meanwhile. There is no node here, and perhaps no pod yet.
    name = inputs["name"]
    [line] = releases.lines_of(api_server.admin, name, "default")
    assert line == f"{name} has no pod yet" or f"pod {name}-" in line and "has no node" in line
    assert releases.lines_of(api_server.admin, "another", "default") == []
    mended = inputs | {"values": {"hangs": False}}
    after = plugin.update(call(id=caught.value.id), inputs, mended, caught.value.state)
    assert after["status"] | {"revision": 2, "status": "deployed"} == after["status"]


def test_the_user_s_interrupt_ends_helm_which_writes_that_down(
    api_server: ApiServer, plugin, chart
):
    inputs, interrupted = checked(plugin, release(chart, values={"hangs": True})), threading.Event()

    def interrupt() -> None:
        """Once helm has stored its release: before, there is nothing to write down."""
        until(lambda: settings(api_server, f"default/{inputs['name']}"))
        interrupted.set()

    threading.Thread(target=interrupt, daemon=True).start()
    began = time.monotonic()
    with pytest.raises(NotReady) as caught:
        plugin.create(call(cancelled=interrupted), inputs)
    assert time.monotonic() - began < 100 and caught.value.state["status"]["status"] == "failed"


def test_a_plugin_that_is_killed_takes_helm_along_and_leaves_the_release_pending(
    api_server: ApiServer, plugin, chart
):
    inputs = checked(plugin, release(chart, values={"hangs": True}))
    program = (
        "from test_helm import *; p = Kubernetes(); p.configure({'kubeconfig': "
        f"{api_server.kubeconfig()!r}}}); p.create(call(), {inputs!r})"
    )
    victim = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parent,
        env=os.environ | {"PYTHONPATH": str(paths.HOME)},
    )
    id_ = f"default/{inputs['name']}"
    while not settings(api_server, id_):
        time.sleep(0.1)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    found = plugin.read(call(id=id_), inputs, inputs)
    assert found and found.state["status"]["status"] == "pending-install"
    with pytest.raises(Refused, match="another operation .* is in progress"):
        plugin.update(call(id=id_), inputs, inputs, found.state)


def test_a_release_changed_behind_our_back_shows_at_the_refresh(plugin, chart):
    inputs = checked(plugin, release(chart, values={"size": 2}))
    id_, state = plugin.create(call(), inputs)
    plugin.update(call(id=id_), inputs, inputs | {"values": {"size": 5}}, state)
    found = plugin.read(call(id=id_), inputs, state)
    assert found and found.state["status"]["revision"] == 2
    assert plugin.diff(call(id=id_), found.inputs, inputs, found.state).changes == {
        "values.size": "update"
    }


def test_an_import_needs_only_the_id(plugin, chart):
    id_, state = installed(plugin, release(chart, values={"size": 2}))
    found = plugin.read(call(id=id_), {}, {})
    assert found and found.inputs["values"] == {"size": 2} and found.inputs["chart"] == "demo"
    assert found.state["status"] == state["status"]


def test_uninstalling_what_is_gone_is_an_error_as_with_helm(plugin, chart):
    id_, state = installed(plugin, release(chart))
    plugin.delete(call(id=id_), state)
    with pytest.raises(Refused, match="release: not found"):
        plugin.delete(call(id=id_), state)


def test_without_a_cluster_charts_are_read_and_nothing_else(api_server: ApiServer, chart):
    plugin = Kubernetes()
    plugin.configure({"kubeconfig": api_server.kubeconfig("https://127.0.0.1:9")})
    inputs = checked(plugin, release(chart))
    assert inputs["version"] == "1.0.0"
    with pytest.raises(Refused, match="can't install Helm Release with unreachable cluster"):
        plugin.create(call(), inputs)


def test_no_kubeconfig_is_left_on_the_disk(plugin, chart, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    installed(plugin, release(chart))
    assert not [
        file
        for file in (tmp_path / "tmp").rglob("*")
        if file.is_file() and "let-me-in" in file.read_text()
    ]
    assert json.loads(plugin._cluster.access.text)
