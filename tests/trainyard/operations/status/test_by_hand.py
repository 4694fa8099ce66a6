"""What somebody deletes or changes in the cluster by hand is found, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from trainyard.operations.status import by_hand
from trainyard.operations.status.by_hand import CIPHER, Changes, drifted, wanted

Object = dict[str, Any]
POOL: Object = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {
        "name": "l4",
        "labels": {"trainyard.io/pool": "l4"},
        "annotations": {"pulumi.com/waitFor": "condition=Ready"},
    },
    "spec": {
        "limits": {"nodes": 2, "cpu": "1000m"},
        "template": {"spec": {"taints": [], "requirements": [{"key": "zone", "values": ["a"]}]}},
        "weight": None,
    },
}
MAP: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "files", "namespace": "training"},
    "data": {"train.py": "print()", "token": {CIPHER: "1b47061264138c4ac30d75fd1eb44270"}},
}
SERVED = {
    "/apis/karpenter.sh/v1": ["nodepools NodePool", "nodepools/status NodePool"],
    "/api/v1": ["configmaps ConfigMap", "namespaces Namespace"],
}
POOLS, MAPS = "/apis/karpenter.sh/v1/nodepools", "/api/v1/namespaces/training/configmaps"


def resource(inputs: Object, kind: str = "", **more: Any) -> Object:
    return {
        "type": kind or f"kubernetes:{inputs['apiVersion']}:{inputs['kind']}",
        "custom": True,
        "inputs": inputs,
        **more,
    }


def state(*resources: Object, **more: Any) -> Object:
    return {"deployment": {"resources": [*resources], **more}}


class Cluster:
    """A cluster that serves SERVED, with these lists."""

    def __init__(self, lists: Mapping[str, list[Object] | str]) -> None:
        self.lists, self.asked = lists, list[str]()

    def __call__(self, *words: str) -> str:
        path = words[2].partition("?")[0]
        self.asked.append(path)
        if path in SERVED:
            pairs = [each.split() for each in SERVED[path]]
            return json.dumps({"resources": [{"name": name, "kind": kind} for name, kind in pairs]})
        found = self.lists.get(path, "Error from server (NotFound): no such path")
        if isinstance(found, str):
            raise RuntimeError(found)
        return json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": found})


def live(obj: Object) -> Object:
    """The object as an API server shows it: with defaults, and without values that are empty."""
    shown = json.loads(json.dumps(obj))
    shown["metadata"] |= {"uid": "1", "resourceVersion": "7"}
    shown["metadata"].pop("annotations", None)
    if obj is POOL:
        shown["spec"]["disruption"] = {"consolidateAfter": "0s"}
        shown["spec"]["limits"]["cpu"] = "1"
        del shown["spec"]["weight"], shown["spec"]["template"]["spec"]["taints"]
    else:
        shown["data"]["token"] = "in clear"
    return shown


def said(lists: Mapping[str, list[Object] | str], *objects: Object) -> list[str]:
    return [finding.what for finding in drifted(objects, Cluster(lists), "dev")]


def test_an_object_with_defaults_of_the_api_server_is_as_it_was_left() -> None:
    assert said({POOLS: [live(POOL)], MAPS: [live(MAP)]}, POOL, MAP) == []


def test_a_deleted_object_is_named_with_the_two_commands_that_make_it_again() -> None:
    [gone, lost] = drifted([POOL, MAP], Cluster({POOLS: [], MAPS: []}), "dev")
    assert (gone.what, lost.what) == ("NodePool l4 is gone", "ConfigMap training/files is gone")
    assert gone.do == "pulumi refresh --stack dev, then pulumi up --stack dev"


def test_a_kind_that_is_not_served_any_more_has_lost_its_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(SERVED, "/apis/karpenter.sh/v1")
    assert said({MAPS: [live(MAP)]}, POOL, MAP) == ["NodePool l4 is gone"]


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        (("spec", "limits", "nodes"), 9, "spec.limits.nodes is 9 and was 2"),
        (("spec", "limits"), None, "spec.limits.nodes is not there and was 2"),
        (
            ("spec", "template", "spec", "requirements", 0, "values"),
            ["a", "b"],
            'spec.template.spec.requirements[0].values is ["a", "b"] and was ["a"]',
        ),
        (
            ("metadata", "labels", "trainyard.io/pool"),
            "other",
            "metadata.labels.trainyard.io/pool is other and was l4",
        ),
    ],
)
def test_a_changed_field_is_named_with_both_values(
    path: tuple[Any, ...], value: Any, what: str
) -> None:
    pool = live(POOL)
    at = pool
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    [found] = drifted([POOL], Cluster({POOLS: [pool]}), "dev")
    assert found.what.startswith(f"NodePool l4 was changed: {what}")
    assert "PULUMI_K8S_ENABLE_PATCH_FORCE=true pulumi up --stack dev" in found.do


def test_two_long_values_are_cut_so_that_their_difference_is_seen() -> None:
    common = "a" * 100
    assert by_hand.difference("data.x", f"{common}b", f"{common}c") == (
        f"data.x is …{'a' * 20}b and was …{'a' * 20}c"
    )


def test_of_many_changed_fields_three_are_named() -> None:
    before = MAP | {"data": {f"file-{n}": "x" * 80 for n in range(5)}}
    after = before | {"data": {f"file-{n}": "y" for n in range(5)}}
    [what] = said({MAPS: [after]}, before)
    assert what.count(" was ") == 4 and what.endswith("; and 2 more") and "x" * 60 not in what


def test_what_this_caller_cannot_read_is_not_judged() -> None:
    refused = 'Error from server (Forbidden): nodepools is forbidden: User "member"'
    assert said({POOLS: refused, MAPS: []}, POOL, MAP) == ["ConfigMap training/files is gone"]
    with pytest.raises(RuntimeError, match="timed out"):
        said({POOLS: "timed out"}, POOL)


def test_jobs_secrets_patches_and_objects_of_somebody_else_are_not_compared() -> None:
    secret = MAP | {"kind": "Secret"}
    train = MAP | {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    release = resource({"name": "karpenter"}, "kubernetes:helm.sh/v3:Release")
    assert wanted(
        state(
            resource(secret),
            resource(train),
            release,
            resource(MAP, "kubernetes:core/v1:ConfigMapPatch"),
            resource(MAP, external=True),
            resource(MAP, delete=True),
            resource(MAP, custom=False),
            resource({"bucket": "a"}, "aws:s3/bucket:Bucket"),
            resource(POOL),
        )
    ) == [POOL]


def test_an_update_that_has_not_ended_is_left_alone() -> None:
    assert wanted(state(resource(POOL))) == [POOL]
    assert wanted(state(resource(POOL), pending_operations=[{"type": "updating"}])) == []


def test_each_kind_is_listed_once_for_each_namespace() -> None:
    cluster = Cluster({POOLS: [live(POOL)], MAPS: [live(MAP)]})
    more = MAP | {"metadata": {"name": "more", "namespace": "training"}}
    assert [each.what for each in drifted([POOL, MAP, more], cluster, "dev")] == [
        "ConfigMap training/more is gone"
    ]
    assert sorted(cluster.asked) == sorted([*SERVED, POOLS, MAPS])


def test_a_look_that_is_repeated_keeps_an_answer_for_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, asked = [0.0], list[str]()
    monkeypatch.setattr(by_hand.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        by_hand, "changed_by_hand", lambda stack, kubectl: asked.append(stack) or []
    )
    changes = Changes("dev", Cluster({}))
    for second in (0.0, 59.0, 60.0, 61.0):
        now[0] = second
        changes()
    assert len(asked) == 2
