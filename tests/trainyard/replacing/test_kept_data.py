"""An entry stays for as long as the data of what it made is kept."""

from __future__ import annotations

import pytest

from tests.support.deployed import deployed
from tests.support.graphs import environment
from tests.support.stackfile import Edit, at, environment_plan
from trainyard.plans.stores import KEPT
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.kept_data import TYPES, kept_errors
from trainyard.replacing.replacing import replacing_errors

ALONE = at("jobs", {})
NONE = at("storage", {})
STORES = {
    "files": {"efs": {}},
    "scratch": {"lustre": {"capacity_gib": 4800, "throughput_mbps_per_tib": 500}},
    "sets": {"s3": {}},
}
REGISTRY = at("registries", {"images": {}})
METRICS = at("metrics", {"managed_prometheus": {}})


def _stores(data: str, *without: str) -> Edit:
    kept = {name: it for name, it in STORES.items() if name not in without}
    return at("storage", {name: {**it, "data": data} for name, it in kept.items()})


def _deployed(*edits: Edit) -> Deployed:
    return deployed(environment(ALONE, *edits))


def _said(before: Deployed, *edits: Edit) -> list[str]:
    return [str(each) for each in kept_errors(environment_plan(ALONE, *edits), before)]


def test_every_kind_of_store_is_refused_whose_entry_is_gone_while_its_data_is_kept() -> None:
    before = _deployed(_stores("keep"))
    assert _said(before, _stores("keep")) == []
    files, scratch, sets = _said(before, NONE)
    assert scratch == (
        "environment.storage.scratch: must stay while the data of store scratch is kept: it was deployed with data:"
        " keep, and no update deletes it; got no entry. Fix: write the entry again. To delete it with its data, write"
        " data: delete at it and run `pulumi up`, and delete the entry then"
    )
    assert "storage.files:" in files and "storage.sets:" in sets


def test_a_registry_and_a_workspace_of_prometheus_are_refused_as_stores_are() -> None:
    before = _deployed(NONE, REGISTRY, METRICS)
    assert _said(before, NONE, REGISTRY, METRICS) == []
    registry, workspace = _said(before, NONE)
    assert registry.startswith("environment.registries.images: must stay while")
    assert workspace.startswith("environment.metrics.managed_prometheus: must stay while")


def test_what_is_deployed_with_data_delete_may_go() -> None:
    before = _deployed(_stores("delete"), at("registries", {"images": {"data": "delete"}}))
    assert {kind for kind, _ in before.resources} & TYPES
    assert _said(before, NONE) == []


@pytest.mark.parametrize("data", ["keep", "delete"])
def test_a_kept_store_that_is_renamed_has_one_error_that_no_entry_overrules(data: str) -> None:
    before = _deployed(_stores(data))
    other = at("storage", {"other": STORES["scratch"]})
    plan = environment_plan(ALONE, other, at("allow_replace", ["storage.scratch"]))
    errors = [each.path for each in (*kept_errors(plan, before), *replacing_errors(plan, before))]
    gone = [f"environment.storage.{name}" for name in STORES]
    assert [path for path in errors if path != "environment.storage"] == (
        gone if data == "keep" else []
    )


def test_a_release_that_did_not_say_what_is_kept_leaves_it_to_the_engine() -> None:
    before = _deployed(_stores("keep"))
    silent = {
        key: {name: it for name, it in outputs.items() if name != KEPT}
        for key, outputs in before.resources.items()
    }
    assert _said(Deployed(resources=silent), NONE) == []
