"""The kubernetes plugin against a real API server, as the genuine plugin would behave."""

from __future__ import annotations

import functools
import json
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from rehearsal import paths
from rehearsal.kube import ApiError
from rehearsal.providers.call import Call
from rehearsal.providers.kubernetes import helm, kinds, objects, waiting
from rehearsal.providers.kubernetes.kubeconfig import access, load
from rehearsal.providers.kubernetes.provider import Kubernetes
from rehearsal.providers.problems import Cancelled, Invalid, NotReady, Refused
from rehearsal.providers.wire import UNKNOWN
from tests.rehearsal.api_server import MANAGERS_TOKEN
from tests.support.patience import until
from trainyard.objects.queues.queues import MANAGERS

if TYPE_CHECKING:
    from api_server import ApiServer

pytest_plugins = ("tests.rehearsal.api_server",)
CRD_KIND = "widgets.example.com"


def call(type_: str, name: str = "it", **details: Any) -> Call:
    return Call(urn=f"urn:pulumi:dev::project::kubernetes:{type_}::{name}", **details)


def config_map(name: str | None = None, space: str = "default", **data: str) -> dict[str, Any]:
    meta = {"namespace": space} | ({"name": name} if name else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def widget(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"} | (
        {"annotations": annotations} if annotations else {}
    )
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, "spec": spec}


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def plugin(api_server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Kubernetes:
    monkeypatch.setattr(objects, "RETRIES", (0.2, 0.2))
    monkeypatch.setattr(waiting, "POLL", 0.05)
    return configured(api_server)


def configured(api_server: ApiServer, **options: Any) -> Kubernetes:
    made = Kubernetes()
    made.configure({"kubeconfig": api_server.kubeconfig()} | options)
    return made


def created(
    plugin: Kubernetes, type_: str, inputs: dict[str, Any], **details: Any
) -> tuple[str, dict[str, Any]]:
    return plugin.create(call(type_, **details), plugin.check(call(type_), {}, inputs))


@pytest.fixture(scope="session")
def widgets(api_server: ApiServer) -> None:
    """A kind of custom resources with a status."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    api_server.admin.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": CRD_KIND},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "versions": [version],
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            },
        },
        manager="test",
    )
    until(lambda: served(api_server.admin))


def served(api) -> bool:
    try:
        return bool(api.resource("example.com/v1", "Widget"))
    except ApiError:
        return False


def live(api_server: ApiServer, obj: dict[str, Any]) -> dict[str, Any]:
    return api_server.admin.get(obj) or {}


def report(api, obj: dict[str, Any], **status: Any) -> None:
    api.request(
        "PATCH",
        api.path(obj) + "/status",
        {"status": status},
        content_type="application/merge-patch+json",
    )


def later(seconds: float, what: Callable[[], Any]) -> None:
    threading.Timer(seconds, what).start()


# Inputs


@pytest.mark.parametrize(
    ("type_", "obj", "named"),
    [
        (
            "core/v1:ConfigMap",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "a"}},
            "metadata.name",
        ),
        (
            "core/v1:NamespacePatch",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},
            "NamespacePatch",
        ),
        (
            "core/v1:Endpoints",
            {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "a"}},
            "v1:Endpoints",
        ),
        (
            "core/v1:Namespace",
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "a", "annotations": {"pulumi.com/patchForce": "true"}},
            },
            "pulumi.com/patchForce",
        ),
    ],
)
def test_what_it_does_not_do_is_refused_by_name(plugin, type_, obj, named):
    with pytest.raises(Refused, match=named):
        plugin.check(call(type_), {}, obj)


def test_every_kind_and_release_of_the_program_is_implemented():
    graph = json.loads((paths.HOME / "tests/golden/dev.graph.json").read_text())
    made = [one["inputs"] for one in graph if one["type"].startswith("kubernetes:")]
    assert all(kinds.of(inputs) for inputs in made if "kind" in inputs)
    assert {key for inputs in made if "chart" in inputs for key in inputs} <= helm.INPUTS


# Creating


def test_an_object_is_created_and_its_state_is_the_live_one(api_server: ApiServer, plugin):
    id_, state = created(plugin, "core/v1:ConfigMap", config_map(unique("made"), a="1"))
    assert id_ == f"default/{state['metadata']['name']}"
    meta = live(api_server, state)["metadata"]
    assert state["metadata"]["uid"] == meta["uid"] and state["data"] == {"a": "1"}
    assert meta["managedFields"][0]["manager"] == "pulumi-kubernetes"


def test_an_object_that_exists_already_is_an_error(api_server: ApiServer, plugin):
    inputs = config_map(unique("twice"), a="1")
    created(plugin, "core/v1:ConfigMap", inputs)
    with pytest.raises(Refused, match="(?s)already exists.*pulumi import"):
        created(plugin, "core/v1:ConfigMap", inputs | {"data": {"a": "2"}})
    assert live(api_server, inputs)["data"] == {"a": "1"}


def test_an_object_of_a_kind_nobody_serves_is_refused_after_some_retries(plugin):
    seen: list[str] = []
    with pytest.raises(Refused, match='no matches for kind "Gadget" in version "example.com/v9"'):
        created(
            plugin,
            "example.com/v9:Gadget",
            {"apiVersion": "example.com/v9", "kind": "Gadget", "metadata": {"name": "a"}},
            report=seen.append,
        )
    assert len(seen) == 2


def test_an_object_waits_a_while_for_its_namespace(api_server: ApiServer, plugin):
    space = unique("late")
    later(
        0.1,
        lambda: api_server.admin.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}, manager="test"
        ),
    )
    assert created(plugin, "core/v1:ConfigMap", config_map("a", space))[0] == f"{space}/a"


def test_a_preview_shows_what_the_api_server_would_refuse(plugin):
    bad = config_map("UPPER")
    with pytest.raises(Refused, match="RFC 1123"):
        created(plugin, "core/v1:ConfigMap", bad, preview=True)


def test_a_preview_passes_where_it_cannot_know(plugin):
    unserved = {
        "apiVersion": "example.com/v9",
        "kind": "Gadget",
        "metadata": {"name": "a", "namespace": "default"},
    }
    assert plugin.create(call("example.com/v9:Gadget", preview=True), unserved) == ("", unserved)
    homeless = config_map("a", "not-there-yet")
    assert plugin.create(call("core/v1:ConfigMap", preview=True), homeless) == ("", homeless)
    vague = config_map("a", x=UNKNOWN)
    assert plugin.create(call("core/v1:ConfigMap", preview=True), vague) == ("", vague)


# Differences and updates


def diff(
    plugin: Kubernetes,
    type_: str,
    old: dict[str, Any],
    new: dict[str, Any],
    state=None,
    **details: Any,
):
    return plugin.diff(call(type_, id="default/it", **details), old, new, state or old)


def test_what_controllers_wrote_is_no_difference(plugin):
    old = widget("a", size=1)
    noisy = widget("a", {"by": "controller"}, size=1, color="red") | {"status": {"ready": True}}
    assert not diff(plugin, "example.com/v1:Widget", old, old, noisy).changes


def test_a_field_that_drifted_is_a_difference_once_it_was_read(plugin):
    old = widget("a", size=1)
    assert diff(plugin, "example.com/v1:Widget", old, old, widget("a", size=2)).changes == {
        "spec.size": "update"
    }


def test_equal_quantities_are_no_difference(plugin):
    old = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"cpu": "1000m", "memory": "1024Mi", "requests.nvidia.com/gpu": 8}},
    }
    canonical = old | {
        "spec": {"hard": {"cpu": "1", "memory": "1Gi", "requests.nvidia.com/gpu": "8"}}
    }
    assert not diff(plugin, "core/v1:ResourceQuota", old, old, canonical).changes
    more = old | {"spec": {"hard": old["spec"]["hard"] | {"cpu": "2"}}}
    assert diff(plugin, "core/v1:ResourceQuota", old, more, canonical).changes == {
        "spec.hard.cpu": "update"
    }


def test_an_empty_value_that_the_api_server_drops_is_no_difference(plugin):
    old, stored = volume("v"), volume("v")
    del stored["spec"]["storageClassName"]
    assert not diff(plugin, "core/v1:PersistentVolume", old, old, stored).changes
    own = widget("a", color="")
    assert diff(plugin, "example.com/v1:Widget", own, own, widget("a")).changes == {
        "spec.color": "add"
    }


def test_the_annotation_of_a_run_has_the_path_the_engine_expects(plugin):
    old, new = widget("a", {"trainyard.io/run": "1"}), widget("a", {"trainyard.io/run": "2"})
    assert diff(plugin, "example.com/v1:Widget", old, new).changes == {
        'metadata.annotations["trainyard.io/run"]': "update"
    }


def test_ignored_paths_are_no_difference(plugin):
    old, drifted = widget("a", size=1), widget("a", size=2)
    assert not diff(plugin, "example.com/v1:Widget", old, old, drifted, ignored=("spec",)).changes


@pytest.mark.parametrize(
    ("obj", "path", "value"),
    [
        (config_map("a"), ("metadata", "name"), "b"),
        (config_map("a"), ("metadata", "namespace"), "other"),
        (config_map("a", x="1"), ("data", "x"), "2"),
        (
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "a"},
                "spec": {"volumeName": "x"},
            },
            ("spec", "volumeName"),
            "y",
        ),
        (
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "a"},
                "spec": {"csi": {"volumeHandle": "x"}},
            },
            ("spec", "csi", "volumeHandle"),
            "y",
        ),
        (
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": "a"},
                "spec": {"selector": {"matchLabels": {"a": "b"}}},
            },
            ("spec", "selector", "matchLabels", "a"),
            "c",
        ),
    ],
)
def test_some_fields_need_a_new_object(plugin, obj, path, value):
    new = json.loads(json.dumps(obj))
    place = new
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    found = diff(plugin, f"x/v1:{obj['kind']}", obj, new)
    assert found.replaces == {".".join(path)}
    assert found.delete_before_replace == (path[0] != "metadata")


def test_a_field_that_leaves_the_program_leaves_the_object(api_server: ApiServer, plugin, widgets):
    name = unique("w")
    old = widget(name, size=1, color="red")
    id_, state = created(plugin, "example.com/v1:Widget", old)
    new = plugin.update(call("example.com/v1:Widget", id=id_), old, widget(name, size=2), state)
    assert new["spec"] == {"size": 2}
    newer = plugin.update(call("example.com/v1:Widget", id=id_), old, widget(name, depth=3), new)
    assert newer["spec"] == {"depth": 3}


def test_a_preview_of_an_update_changes_nothing(api_server: ApiServer, plugin, widgets):
    id_, state = created(plugin, "example.com/v1:Widget", widget(unique("w"), size=1))
    new = widget(state["metadata"]["name"], size=2)
    shown = plugin.update(call("example.com/v1:Widget", id=id_, preview=True), new, new, state)
    assert shown["spec"] == {"size": 2} and live(api_server, state)["spec"] == {"size": 1}


@pytest.mark.parametrize("looks", [True, False])
def test_a_preview_of_who_may_only_look_or_not_even_that_shows_the_inputs(
    api_server: ApiServer, looks: bool
) -> None:
    space, put = unique("seen"), functools.partial(api_server.admin.apply, manager="test")
    put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    if looks:
        put(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": "look", "namespace": space},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "view",
                },
                "subjects": [{"kind": "Group", "name": MANAGERS}],
            }
        )
    was = config_map("it", space, a="1")
    put(was)
    kubeconfig = api_server.kubeconfig(token=MANAGERS_TOKEN)
    other = configured(api_server, kubeconfig=kubeconfig)

    def may_look() -> bool:
        try:
            return bool(access(load(kubeconfig)).api.get(was))
        except ApiError:
            return False

    assert until(lambda: may_look() == looks), "the API server learns of a binding a moment later"
    new = config_map("it", space, a="2")
    named = call("core/v1:ConfigMap", id=f"{space}/it", preview=True)
    assert other.update(named, was, new, was) == new
    assert live(api_server, was)["data"] == {"a": "1"}
    with pytest.raises((ApiError, NotReady), match="forbidden"):
        other.update(call("core/v1:ConfigMap", id=f"{space}/it"), was, new, was)


def test_a_field_somebody_else_took_is_a_conflict(api_server: ApiServer, plugin, widgets):
    id_, state = created(plugin, "example.com/v1:Widget", widget(unique("w"), size=1))
    api_server.admin.apply(widget(state["metadata"]["name"], size=7), manager="other")
    new = widget(state["metadata"]["name"], size=2)
    with pytest.raises(NotReady, match='(?s)field conflict detected.*"other"'):
        plugin.update(call("example.com/v1:Widget", id=id_), new, new, state)
    assert live(api_server, state)["spec"] == {"size": 7}


@pytest.mark.parametrize(
    ("setting", "variable", "taken"),
    [("true", "", True), (None, "true", True), ("false", "true", False), (None, "", False)],
)
def test_a_field_somebody_else_took_is_taken_back_on_request(
    setting: str | None,
    variable: str,
    taken: bool,
    api_server: ApiServer,
    plugin,
    widgets,
    monkeypatch: pytest.MonkeyPatch,
):
    """The setting of the provider comes before the environment variable."""
    id_, state = created(plugin, "example.com/v1:Widget", widget(unique("w"), size=1))
    api_server.admin.apply(widget(state["metadata"]["name"], size=7), manager="other")
    new = widget(state["metadata"]["name"], size=2)
    monkeypatch.setenv("PULUMI_K8S_ENABLE_PATCH_FORCE", variable)
    forcing = configured(api_server, enablePatchForce=setting)
    with nullcontext() if taken else pytest.raises(NotReady, match="field conflict detected"):
        forcing.update(call("example.com/v1:Widget", id=id_), new, new, state)
    assert live(api_server, state)["spec"] == {"size": 2 if taken else 7}


def test_an_update_leaves_ignored_fields_to_whoever_wrote_them(
    api_server: ApiServer, plugin, widgets
):
    id_, state = created(plugin, "example.com/v1:Widget", widget(unique("w"), size=1))
    api_server.admin.apply(widget(state["metadata"]["name"], size=7), manager="other")
    new = widget(state["metadata"]["name"], {"run": "2"}, size=1)
    updated = plugin.update(
        call("example.com/v1:Widget", id=id_, ignored=("spec",)), new, new, state
    )
    assert updated["spec"] == {"size": 7} and updated["metadata"]["annotations"]["run"] == "2"


def test_an_update_after_an_import_leaves_ignored_fields_as_they_are(plugin, widgets):
    """An import reads the identity of a custom resource only, and the engine keeps what that has."""
    id_, state = created(plugin, "example.com/v1:Widget", widget(unique("w"), size=1))
    new = widget(state["metadata"]["name"], {"run": "1"})
    del new["spec"]
    ignoring = call("example.com/v1:Widget", id=id_, ignored=("spec", "data"))
    updated = plugin.update(ignoring, new, new, state)
    assert updated["spec"] == {"size": 1} and "data" not in updated
    inside = call("example.com/v1:Widget", id=id_, ignored=("spec.size",))
    with pytest.raises(Refused, match="ignoreChanges of spec.size"):
        plugin.update(inside, new, new, state)


def test_what_the_api_server_calls_immutable_fails_the_update(plugin):
    name = unique("v")
    created(plugin, "core/v1:PersistentVolume", volume(name))
    inputs = claim(name, name)
    id_, state = created(plugin, "core/v1:PersistentVolumeClaim", inputs)
    new = inputs | {"spec": inputs["spec"] | {"volumeMode": "Block"}}
    with pytest.raises(NotReady, match="(?s)failed to fully initialize.*is immutable"):
        plugin.update(call("core/v1:PersistentVolumeClaim", id=id_), inputs, new, state)


# Waiting


def test_a_custom_resource_is_ready_at_once_without_the_annotation(plugin, widgets):
    created(plugin, "example.com/v1:Widget", widget(unique("w")))


@pytest.mark.parametrize(
    ("goal", "status"),
    [
        ("condition=Ready", {"conditions": [{"type": "Ready", "status": "True"}]}),
        ("condition=Busy=False", {"conditions": [{"type": "Busy", "status": "False"}]}),
    ],
)
def test_a_custom_resource_waits_for_what_its_annotation_names(
    api_server: ApiServer, plugin, widgets, goal, status
):
    made = widget(unique("w"), {"pulumi.com/waitFor": goal})
    api, began = api_server.admin, time.monotonic()
    later(0.5, lambda: until(lambda: api.get(made)) and report(api, made, **status))
    assert created(plugin, "example.com/v1:Widget", made)[1]["status"] == status
    assert time.monotonic() - began >= 0.4


def test_a_goal_nobody_understands_is_refused_before_anything_is_made(
    api_server: ApiServer, plugin, widgets
):
    for goal in ("Ready", "jsonpath={.status.phase}=Up", '["condition=Ready"]'):
        made = widget(unique("w"), {"pulumi.com/waitFor": goal})
        with pytest.raises(Refused):
            created(plugin, "example.com/v1:Widget", made)
        assert api_server.admin.get(made) is None


def test_an_object_that_never_gets_ready_stays_in_the_state_with_the_reason(
    api_server: ApiServer, plugin, widgets
):
    made = widget(unique("w"), {"pulumi.com/waitFor": "condition=Ready"})
    with pytest.raises(NotReady, match="(?s)was successfully created, but .* timed out") as caught:
        created(plugin, "example.com/v1:Widget", made, timeout=0.3)
    assert caught.value.id == f"default/{made['metadata']['name']}"
    assert caught.value.state["metadata"]["uid"] == live(api_server, made)["metadata"]["uid"]


def test_an_interrupt_ends_the_wait_and_keeps_the_object(plugin, widgets):
    interrupted = threading.Event()
    later(0.3, interrupted.set)
    with pytest.raises(NotReady, match="cancelled") as caught:
        created(
            plugin,
            "example.com/v1:Widget",
            widget(unique("w"), {"pulumi.com/waitFor": "condition=Ready"}),
            cancelled=interrupted,
        )
    assert caught.value.id


def volume(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Ti"},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "csi": {"driver": "fsx.csi.aws.com", "volumeHandle": "fs-1"},
        },
    }


def claim(name: str, volume_name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": volume_name,
            "resources": {"requests": {"storage": "1Ti"}},
        },
    }


def test_a_job_is_awaited_until_it_is_complete_and_says_why_it_is_not() -> None:
    def job(*conditions: dict[str, str]) -> dict[str, Any]:
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "mkdir", "namespace": "stores"},
            "spec": {"selector": {"matchLabels": {"job-name": "mkdir"}}},
            "status": {"conditions": [*conditions]},
        }

    api: Any = SimpleNamespace(path=lambda *_, **__: "", request=lambda *_: {"items": []})
    failed = {"type": "Failed", "status": "True", "message": "BackoffLimitExceeded"}
    kind = kinds.of(job())
    assert kind.unmet(job(), api) == ["Job: it has not completed"]
    assert kind.unmet(job(failed), api) == ["Job: BackoffLimitExceeded"]
    assert kind.unmet(job({"type": "Complete", "status": "True"}), api) == []


def test_a_pod_is_awaited_until_it_is_ready_or_has_succeeded_and_says_what_it_waits_for() -> None:
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hello"}}
    api: Any = None
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
    unmet = kinds.of(pod).unmet
    assert unmet(pod | {"status": {"conditions": [waits]}}, api) == ["Unschedulable: no"]
    ready = {"type": "Ready", "status": "True"}
    assert unmet(pod | {"status": {"conditions": [ready]}}, api) == []
    assert unmet(pod | {"status": {"phase": "Succeeded"}}, api) == []


def test_a_volume_is_awaited_until_it_is_available_and_a_claim_until_it_is_bound(plugin):
    name = unique("v")
    assert (
        created(plugin, "core/v1:PersistentVolume", volume(name))[1]["status"]["phase"]
        == "Available"
    )
    assert (
        created(plugin, "core/v1:PersistentVolumeClaim", claim(name, name))[1]["status"]["phase"]
        == "Bound"
    )


def test_a_quota_is_awaited_until_its_controller_saw_it(plugin):
    inputs = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": unique("q")},
        "spec": {"hard": {"requests.nvidia.com/gpu": "8"}},
    }
    assert created(plugin, "core/v1:ResourceQuota", inputs)[1]["status"]["hard"] == {
        "requests.nvidia.com/gpu": "8"
    }


def workload(kind: str, name: str) -> dict[str, Any]:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def test_a_daemon_set_without_nodes_is_ready(plugin):
    state = created(plugin, "apps/v1:DaemonSet", workload("DaemonSet", unique("d")))[1]
    assert state["status"]["desiredNumberScheduled"] == 0


def test_what_never_gets_ready_holds_nobody_up_where_its_annotation_says_so(
    api_server: ApiServer, plugin
):
    made = claim(unique("c"), "nowhere")
    made["metadata"]["annotations"] = {"pulumi.com/skipAwait": "true"}
    id_, state = created(plugin, "core/v1:PersistentVolumeClaim", made, timeout=1)
    assert state["status"]["phase"] == "Pending", "it is never bound"
    assert plugin.read(call("core/v1:PersistentVolumeClaim", id=id_), made, state)
    held = made | {"metadata": made["metadata"] | {"finalizers": ["example.com/held"]}}
    api_server.admin.apply(held, manager="other", force=True)
    plugin.delete(call("core/v1:PersistentVolumeClaim", id=id_, timeout=1), state)
    assert live(api_server, made)["metadata"]["deletionTimestamp"]


def test_a_daemon_set_that_is_not_ready_everywhere_names_its_pods():
    half = workload("DaemonSet", "d") | {
        "status": {
            "desiredNumberScheduled": 2,
            "currentNumberScheduled": 2,
            "updatedNumberScheduled": 2,
            "numberAvailable": 1,
        }
    }
    waiting_ = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    pod = {
        "metadata": {"namespace": "default", "name": "d-1"},
        "status": {"containerStatuses": [{"state": waiting_}]},
    }
    api = Mock(request=lambda *_: {"items": [pod]})
    assert kinds.of(half).unmet(half, api) == [
        "numberAvailable: 1/2",
        "numberReady: 0/2",
        "[Pod default/d-1]: ImagePullBackOff: no such image",
    ]


def test_a_deployment_is_ready_with_the_pods_of_its_newest_template():
    api = Mock(request=lambda *_: {"items": []})

    def missing(status):
        obj = workload("Deployment", "d") | {"status": status}
        obj["metadata"] = obj["metadata"] | {"generation": 2}
        return kinds.of(obj).unmet(obj, api)

    available = {"conditions": [{"type": "Available", "status": "True"}], "observedGeneration": 2}
    assert missing(available | {"updatedReplicas": 1}) == []
    assert missing(available | {"updatedReplicas": 0}) == ["Pods of an older template are left"]
    for status in ({}, available | {"observedGeneration": 1}):
        assert missing(status) == ["Minimum number of live Pods was not attained"]


# Reading and deleting


def test_a_refresh_sees_only_the_fields_the_program_gave(api_server: ApiServer, plugin, widgets):
    inputs = widget(unique("w"), size=1)
    id_, state = created(plugin, "example.com/v1:Widget", inputs)
    noisy = widget(inputs["metadata"]["name"], {"by": "controller"}, color="red")
    api_server.admin.apply(noisy, manager="controller")
    report(api_server.admin, inputs, phase="Up")
    found = plugin.read(call("example.com/v1:Widget", id=id_), inputs, state)
    assert found and found.inputs == inputs | {"metadata": found.inputs["metadata"]}
    assert (
        found.state["status"] == {"phase": "Up"} and "managedFields" not in found.state["metadata"]
    )
    assert not plugin.diff(
        call("example.com/v1:Widget", id=id_), found.inputs, inputs, found.state
    ).changes


def test_an_object_that_is_gone_reads_as_nothing(plugin):
    inputs = config_map(unique("never"))
    assert (
        plugin.read(
            call("core/v1:ConfigMap", id=f"default/{inputs['metadata']['name']}"), inputs, inputs
        )
        is None
    )
    assert plugin.read(call("example.com/v9:Gadget", id="a"), {}, {}) is None


def test_an_import_makes_inputs_of_the_live_object(plugin):
    name = unique("imported")
    created(plugin, "core/v1:ConfigMap", config_map(name, a="1"))
    found = plugin.read(call("core/v1:ConfigMap", id=f"default/{name}"), {}, {})
    assert found and found.inputs == config_map(name, a="1")


def test_a_deletion_waits_until_the_finalizers_are_gone(api_server: ApiServer, plugin, widgets):
    inputs = widget(unique("w"))
    inputs["metadata"]["finalizers"] = ["example.com/keep"]
    id_, state = created(plugin, "example.com/v1:Widget", inputs)
    with pytest.raises(
        Refused, match=r"finalizers might be preventing deletion \(example.com/keep"
    ):
        plugin.delete(call("example.com/v1:Widget", id=id_, timeout=0.3), state)
    free = {"metadata": {"finalizers": None}}
    later(
        0.3,
        lambda: api_server.admin.request(
            "PATCH",
            api_server.admin.path(inputs),
            free,
            content_type="application/merge-patch+json",
        ),
    )
    plugin.delete(call("example.com/v1:Widget", id=id_), state)
    assert api_server.admin.get(inputs) is None


@pytest.mark.parametrize(
    ("asked", "waits"), [(None, True), ("background", False), ("Background", False), ("x", True)]
)
def test_a_deletion_in_the_background_does_not_wait_for_what_belongs_to_the_object(
    api_server: ApiServer, plugin, widgets, asked: str | None, waits: bool
):
    """Nor does the object stay meanwhile, for whose sake its controller would make parts of it again."""
    inputs = widget(unique("w"), {waiting.DELETION: asked} if asked else None)
    id_, state = created(plugin, "example.com/v1:Widget", inputs)
    part = widget(unique("part"))
    part["metadata"]["finalizers"] = ["example.com/keep"]
    part["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "name": inputs["metadata"]["name"],
            "uid": state["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    api_server.admin.apply(part, manager="other")
    gone = call("example.com/v1:Widget", id=id_, timeout=2)
    if waits:
        with pytest.raises(Refused, match=r"preventing deletion \(foregroundDeletion\)"):
            plugin.delete(gone, state)
    else:
        plugin.delete(gone, state)
        assert api_server.admin.get(inputs) is None and api_server.admin.get(part)


def test_an_object_that_somebody_made_again_counts_as_deleted(
    api_server: ApiServer, plugin, widgets
):
    inputs = widget(unique("w"))
    id_, state = created(plugin, "example.com/v1:Widget", inputs)
    first = live(api_server, state)
    another = first | {"metadata": first["metadata"] | {"uid": "another"}}
    answers, read = iter([first, another]), []
    plugin._cluster.api.get = lambda obj: read.append(next(answers)) or read[-1]
    plugin.delete(call("example.com/v1:Widget", id=id_), state)
    assert [obj["metadata"]["uid"] for obj in read] == [first["metadata"]["uid"], "another"]
    live_now = api_server.admin.get(inputs)
    assert not live_now or live_now["metadata"]["deletionTimestamp"], "the first was deleted"


def test_an_interrupt_ends_a_deletion_that_hangs(plugin, widgets):
    inputs = widget(unique("w"))
    inputs["metadata"]["finalizers"] = ["example.com/keep"]
    id_, state = created(plugin, "example.com/v1:Widget", inputs)
    interrupted = threading.Event()
    later(0.3, interrupted.set)
    with pytest.raises(Cancelled):
        plugin.delete(call("example.com/v1:Widget", id=id_, cancelled=interrupted), state)


def test_deleting_what_is_gone_or_of_no_kind_any_more_is_no_error(plugin):
    plugin.delete(call("core/v1:ConfigMap", id="default/never-was"), config_map("never-was"))
    plugin.delete(
        call("example.com/v9:Gadget", id="a"), {"apiVersion": "example.com/v9", "kind": "Gadget"}
    )


# The provider


def test_only_another_identifier_makes_another_cluster(api_server: ApiServer):
    here, there = api_server.kubeconfig("https://one"), api_server.kubeconfig("https://two")
    diffed = Kubernetes().diff_config
    assert not diffed(
        {"kubeconfig": here, "clusterIdentifier": "a"},
        {"kubeconfig": there, "clusterIdentifier": "a"},
    ).replaces
    assert diffed(
        {"kubeconfig": here, "clusterIdentifier": "a"},
        {"kubeconfig": here, "clusterIdentifier": "b"},
    ).replaces == {"clusterIdentifier"}
    assert diffed({"kubeconfig": here}, {"kubeconfig": there}).replaces == {"kubeconfig"}


def test_provider_settings_nobody_implements_are_refused_by_name():
    with pytest.raises(Invalid, match="enableServerSideApply"):
        Kubernetes().check_config({"kubeconfig": "{}", "enableServerSideApply": "false"})


def test_a_cluster_that_does_not_answer_stops_everything_but_previews(api_server: ApiServer):
    plugin, inputs = Kubernetes(), config_map("a")
    plugin.configure({"kubeconfig": api_server.kubeconfig("https://127.0.0.1:9", token="x")})
    assert plugin.create(call("core/v1:ConfigMap", preview=True), inputs) == ("", inputs)
    with pytest.raises(Refused, match="configured Kubernetes cluster is unreachable"):
        plugin.create(call("core/v1:ConfigMap"), inputs)
    with pytest.raises(Refused, match="failed to read resource state due to unreachable cluster"):
        plugin.read(call("core/v1:ConfigMap", id="default/a"), inputs, inputs)
    with pytest.raises(Refused, match="configured Kubernetes cluster is unreachable"):
        plugin.delete(call("core/v1:ConfigMap", id="default/a"), inputs)


def test_what_was_in_a_cluster_that_is_gone_is_forgotten_where_the_user_says_so(
    api_server: ApiServer, monkeypatch: pytest.MonkeyPatch
):
    """As pulumi-kubernetes 4.34.2, Read and Delete of provider.go: a deletion forgets no release."""
    plugin, inputs = Kubernetes(), config_map("a")
    plugin.configure({"kubeconfig": api_server.kubeconfig("https://127.0.0.1:9", token="x")})
    object_ = call("core/v1:ConfigMap", id="default/a")
    release = call(helm.TYPE.removeprefix("kubernetes:"), id="default/r")
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    assert plugin.read(object_, inputs, inputs) is None
    assert plugin.read(release, {}, {"name": "r", "namespace": "default"}) is None
    plugin.delete(object_, inputs)
    with pytest.raises(Refused, match="can't delete Helm Release with unreachable cluster"):
        plugin.delete(release, {})
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "yes")
    with pytest.raises(Refused, match="PULUMI_K8S_DELETE_UNREACHABLE environment variable set to"):
        plugin.delete(object_, inputs)


def test_an_api_server_that_stops_answering_costs_no_object_that_is_waited_for(
    api_server: ApiServer, plugin, widgets, monkeypatch
):
    made = widget(unique("w"), {"pulumi.com/waitFor": "condition=Ready"})

    def stop() -> None:
        until(lambda: api_server.admin.get(made))
        monkeypatch.setattr(plugin._cluster.api, "server", "https://127.0.0.1:9")

    later(0, stop)
    with pytest.raises(NotReady) as caught:
        created(plugin, "example.com/v1:Widget", made, timeout=5)
    assert caught.value.id == f"default/{made['metadata']['name']}"
    with pytest.raises(Refused, match="does not answer"):
        plugin.read(call("example.com/v1:Widget", id=caught.value.id), made, caught.value.state)


def test_who_is_not_let_in_has_an_unreachable_cluster(api_server: ApiServer):
    plugin = Kubernetes()
    plugin.configure({"kubeconfig": api_server.kubeconfig(token="wrong")})
    with pytest.raises(Refused, match="(?s)unreachable.*Unauthorized"):
        plugin.create(call("core/v1:ConfigMap"), config_map("a"))


def test_a_credential_plugin_is_run_as_client_go_does_and_its_token_kept(
    api_server: ApiServer, tmp_path: Path
):
    script = tmp_path / "get-token"
    script.write_text(f"""#!{sys.executable}
import json, os, pathlib
seen = pathlib.Path({str(tmp_path / "seen")!r})
seen.write_text((seen.read_text() if seen.exists() else "") + os.environ["PROFILE"] + "\\n")
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
print(json.dumps(asked | {{"status": {{"token": "let-me-in", "expirationTimestamp": "2999-01-01T00:00:00Z"}}}}))
""")
    script.chmod(0o755)
    entry = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": str(script),
        "env": [{"name": "PROFILE", "value": "mine"}],
    }
    text = api_server.kubeconfig(exec=entry)
    client = access(load(text)).api
    client.request("GET", "/api/v1/namespaces")
    client.request("GET", "/api/v1/nodes")
    assert (tmp_path / "seen").read_text() == "mine\n"
    assert client.credentials
    client.credentials._token = "expired"
    with pytest.raises(ApiError, match="Unauthorized"):
        client.request("GET", "/api/v1/nodes")
    client.request("GET", "/api/v1/nodes")
    assert (tmp_path / "seen").read_text() == "mine\nmine\n"


def test_a_credential_plugin_that_fails_says_so(api_server: ApiServer):
    entry = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "false"}
    plugin = Kubernetes()
    plugin.configure({"kubeconfig": api_server.kubeconfig(exec=entry)})
    with pytest.raises(Refused, match="executable false failed with exit code 1"):
        plugin.create(call("core/v1:ConfigMap"), config_map("a"))
