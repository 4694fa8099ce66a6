"""The claims of a namespace."""

from __future__ import annotations

from tests.support.stackfile import Edit, at, environment_plan
from trainyard.derive.namespace import job_namespace_plan
from trainyard.settings.job import JobConfig, ManifestConfig
from trainyard.settings.training.files import HostPathConfig


def test_jobs_move_to_another_claim_only_where_there_is_another_file_system() -> None:
    def claims(*edits: Edit) -> dict[str, str]:
        return {c.store: c.name for c in environment_plan(*edits).workspace.claims}

    before, moved = claims(), claims(at("zone", "ap-northeast-2c"))
    assert moved["scratch"] != before["scratch"] and moved["home"] == before["home"], (
        "EFS is in every zone"
    )
    assert claims(at("storage.scratch.lustre.capacity_gib", 9600)) == before, (
        "a store that grows is the same"
    )


def test_one_job_with_privileged_pods_or_host_paths_opens_the_namespace_whatever_the_others_are() -> (
    None
):
    """Pod Security is of a namespace: closed, it refuses the pods of the one job that needs it."""

    def opened(*privileged: bool) -> bool:
        jobs = {
            f"job-{number}": ManifestConfig(manifest="x.yaml", pool="g6e", privileged_pods=each)
            for number, each in enumerate(privileged)
        }
        return job_namespace_plan("training", {}, "ap-northeast-2a", None, jobs).host_paths

    mounts = {"data": HostPathConfig(host="/data", path="/data")}
    entries = {
        name: JobConfig(nodes=1, pool="g6e", image="x:1", host_paths=given)
        for name, given in {"a": {}, "b": mounts}.items()
    }
    assert job_namespace_plan("training", {}, "ap-northeast-2a", None, entries).host_paths
    assert opened(False, True) and opened(True, True) and not opened(False, False)
