"""What a preview changes, in the words of a comment."""

from __future__ import annotations

from typing import Any

from tests.support.stackfile import at, environment_plan
from tests.trainyard.replacing.test_new_runs import JOB as JOB_ENTRY
from trainyard.plans.jobs import RUN
from trainyard.replacing.deployed import UNKNOWN
from trainyard.replacing.previewed import LISTED, previewed

JOB = "urn:pulumi:dev::trainyard::trainyard:jobs:Jobs$kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob::{}"

CONFIG_MAP = "urn:pulumi:dev::trainyard::trainyard:jobs:Jobs$kubernetes:core/v1:ConfigMap::{}"


POOL = "urn:pulumi:dev::trainyard::kubernetes:karpenter.sh/v1:NodePool::{}"


OTHER = {**JOB_ENTRY, "checkpoints": {"store": "scratch", "directory": "other"}}


def _state(*words: str) -> dict[str, Any]:
    return {"inputs": {"spec": {"trainer": {"numNodes": 2, "args": [*words]}}}}


def test_a_job_that_starts_again_is_named_with_what_changed_and_where_it_begins() -> None:
    jobs = environment_plan(at("jobs", {"t5": JOB_ENTRY, "other": OTHER})).jobs
    step = {"op": "replace", "replaceReasons": ['metadata.annotations["trainyard.io/run"]']}
    states = {"oldState": _state("--lr", "1e-4"), "newState": _state("--lr", "2e-4")}
    steps = [step | states | {"urn": JOB.format("t5")}, step | {"urn": JOB.format("other")}]
    changed, other = (line for line in previewed({"steps": steps}, jobs) if "new run" in line)
    assert changed.startswith("- **new run** of `t5`: `--lr 1e-4` → `--lr 2e-4`. It resumes from")
    assert other.startswith("- **new run** of `other`: its `run` or `after`, or something")
    assert "annotations" not in changed + other


def test_a_job_whose_run_was_counted_on_says_so() -> None:
    [(name, job)] = environment_plan(at("jobs", {"t5": {**JOB_ENTRY, "run": 2}})).jobs.items()
    old, new = (
        {"inputs": {"metadata": {"annotations": {RUN: run}}, "spec": {}}}
        for run in (job.run.removesuffix("2") + "1", job.run)
    )
    step = {"op": "replace", "urn": JOB.format(name), "oldState": old, "newState": new}
    [said] = [line for line in previewed({"steps": [step]}, {name: job}) if "new run" in line]
    assert said.startswith("- **new run** of `t5`: run: 1 → 2")


def test_a_changed_script_is_named_by_its_path_and_not_by_its_configmap() -> None:
    brings = {"files": {"sources": ["workloads/ddp/train.py"]}}
    [(name, job)] = environment_plan(at("jobs", {"t5": {**JOB_ENTRY, **brings}})).jobs.items()
    volumes = [{"name": "files", "configMap": {"name": called}} for called in ("before", "now")]
    old, new = ({"inputs": {"spec": {"overrides": [{"volumes": [it]}]}}} for it in volumes)
    files = {"inputs": {"data": {"train.py": "print()"}}}
    steps = [
        {"op": "replace", "urn": JOB.format(name), "oldState": old, "newState": new},
        {"op": "replace", "urn": CONFIG_MAP.format(f"{name}-files"), "oldState": files},
    ]
    said = [*previewed({"steps": steps}, {name: job})]
    [run] = [line for line in said if "new run" in line]
    assert run.startswith("- **new run** of `t5`: `workloads/ddp/train.py` changed. ")
    assert not [line for line in said if "ConfigMap" in line]


def test_a_job_that_only_comes_after_a_changed_one_is_named_with_that_one() -> None:
    last = {**JOB_ENTRY, "checkpoints": {"store": "scratch", "directory": "last"}, "after": ["t5"]}
    jobs = environment_plan(at("jobs", {"t5": JOB_ENTRY, "last": last})).jobs
    step = {"op": "replace", "oldState": _state("same"), "newState": _state("same")}
    steps = [step | {"urn": JOB.format(name)} for name in jobs]
    [said] = [line for line in previewed({"steps": steps}, jobs) if "`last`" in line]
    assert said.startswith("- **new run** of `last`: it comes after t5, which changed. It resumes")


def _update(name: str, old: Any, new: Any) -> dict[str, Any]:
    states = {"oldState": {"inputs": old}, "newState": {"inputs": new}}
    return {"op": "update", "urn": POOL.format(name), "diffReasons": ["spec"], **states}


def test_an_update_is_named_with_what_changes_in_it() -> None:
    old = {"spec": {"limits": {"nodes": "4"}}, "metadata": {"name": "h100"}, "__defaults": []}
    new = {"spec": {"limits": {"nodes": "6"}}, "metadata": {"name": "another"}}
    hidden = {"spec": {"limits": {"nodes": UNKNOWN}}}
    steps = [_update("h100", old, new), _update("b200", old, hidden), _update("same", old, old)]
    known, unknown, same = (line for line in previewed({"steps": steps}, {}) if "updates" in line)
    assert known == "- **updates** `NodePool h100`: `limits.nodes` `4` → `6`"
    assert unknown.endswith("`limits.nodes` `4` → `known after the update`")
    assert same.endswith("`NodePool same`: spec")


def test_of_many_updates_each_is_named_and_the_first_ones_have_a_line() -> None:
    steps = [_update(f"p{number}", {"spec": 1}, {"spec": 2}) for number in range(LISTED + 2)]
    stack = {"op": "update", "urn": "urn:pulumi:dev::trainyard::pulumi:pulumi:Stack::trainyard-dev"}
    said = [line for line in previewed({"steps": [stack, *steps]}, {}) if "updates" in line]
    assert len(said) == LISTED + 1
    assert said[-1] == f"- **updates** `NodePool p{LISTED}`, `NodePool p{LISTED + 1}`"


def test_what_is_created_is_one_line() -> None:
    steps = [{"op": "create", "urn": POOL.format(f"p{number}")} for number in range(LISTED + 2)]
    [said] = [line for line in previewed({"steps": steps}, {}) if "creates" in line]
    assert said.startswith("- **creates** `NodePool p0`, ") and said.endswith("and 2 more")


def test_an_access_entry_is_created_with_its_role() -> None:
    urn = "urn:pulumi:dev::trainyard::aws:eks/accessEntry:AccessEntry::viewers-on-call"
    arn = "arn:aws:iam::123456789012:role/on-call"
    step = {"op": "create", "urn": urn, "newState": {"inputs": {"principalArn": arn}}}
    [said] = [line for line in previewed({"steps": [step]}, {}) if "creates" in line]
    assert said == f"- **creates** `AccessEntry viewers-on-call` for {arn}"


def test_files_of_a_program_that_are_made_anew_are_no_loss() -> None:
    step = {"op": "replace", "urn": CONFIG_MAP.format("told-files"), "replaceReasons": ["data"]}
    said = [*previewed({"changeSummary": {"replace": 1}, "steps": [step]}, {})]
    assert "- **updates** `ConfigMap told-files`, which is made anew" in said
    assert not [line for line in said if "replaces" in line]


def test_a_preview_that_failed_says_so_before_what_it_has_compared() -> None:
    problems = [{"severity": "error", "message": "error: 1 error in the stack file"}]
    preview = {"changeSummary": {"same": 1}, "diagnostics": problems}
    first, _, counts, *_ = previewed(preview, {})
    assert first == "- **error**: 1 error in the stack file"
    assert (
        counts.startswith("The preview failed, and has compared only this") and "1 unch" in counts
    )
