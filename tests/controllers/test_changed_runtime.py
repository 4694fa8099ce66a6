"""What becomes of TrainJobs in queues while their runtime changes, and what the rule about it says."""

from __future__ import annotations

import copy
import time
from pathlib import Path

import pytest

from rehearsal.kube import Object
from tests.controllers.test_kueue import job, live, started, starts, waits
from tests.support.kueue_server import KINDS, KueueServer, kueue_server
from tests.support.patience import until
from trainyard.replacing.jobs.runtimes import is_lost, is_stopped

pytestmark = pytest.mark.apart

RUNTIME = "torch-distributed"
AT = f"/apis/{KINDS['TrainJob']}/clustertrainingruntimes/{RUNTIME}"
JOBS = f"/apis/{KINDS['TrainJob']}/namespaces/team-vision/trainjobs"
SECONDS = 10
"""A job that can start has started within two."""


def _suspended(cluster: KueueServer, name: str) -> bool:
    """True where the JobSet of a job has no pods."""
    at = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/team-vision/jobsets/{name}"
    return cluster.api.request("GET", at)["spec"].get("suspend", False)


def _changed(cluster: KueueServer) -> tuple[Object, Object]:
    """The spec of the runtime before and after a variable was added to it."""
    runtime = cluster.api.request("GET", AT)
    before = copy.deepcopy(runtime["spec"])
    [node] = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    [container] = node["template"]["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "NCCL_DEBUG", "value": "INFO"}]
    return before, cluster.api.request("PUT", AT, runtime)["spec"]


def _touched(cluster: KueueServer, name: str) -> None:
    """Kueue looks at a TrainJob again when it changes."""
    note = {"metadata": {"annotations": {"note": "whatever"}}}
    cluster.api.request(
        "PATCH", f"{JOBS}/{name}", note, content_type="application/merge-patch+json"
    )


def _gang_and_another_that_waits(cluster: KueueServer) -> tuple[Object, Object]:
    """The runtime of both jobs before and after it changed under them."""
    for name in ("runs", "waits"):
        cluster.trainer.create(job(cluster, "vision", name, 4))
    assert starts(cluster, "vision", "runs")
    assert until(lambda: not _suspended(cluster, "runs"))
    assert until(lambda: waits(cluster, "vision", "waits"))
    return _changed(cluster)


def test_the_trainer_that_reads_the_runtime_again_neither_starts_nor_stops_a_job_of_before(
    tmp_path: Path,
) -> None:
    with kueue_server(tmp_path, "2.1.0") as cluster:
        was, wanted = _gang_and_another_that_waits(cluster)
        for name in ("runs", "waits"):
            assert is_lost(live(cluster, "vision", name), was, wanted)
            assert not is_lost(live(cluster, "vision", name), was, was)
        _touched(cluster, "runs")
        assert until(lambda: not started(cluster, "vision", "runs"))
        time.sleep(SECONDS)
        assert not _suspended(cluster, "runs")  # its pods keep their nodes
        cluster.api.request("DELETE", f"{JOBS}/runs")
        assert starts(cluster, "vision", "waits")
        time.sleep(SECONDS)
        assert _suspended(cluster, "waits")


def test_the_trainer_that_keeps_the_runtime_starts_a_job_of_before_and_kueue_stops_a_gang_once(
    tmp_path: Path,
) -> None:
    with kueue_server(tmp_path, "2.3.0") as cluster:
        was, wanted = _gang_and_another_that_waits(cluster)
        assert is_stopped(live(cluster, "vision", "runs"), was, wanted)
        assert not is_stopped(live(cluster, "vision", "waits"), was, wanted)
        before = cluster.workload("team-vision", "runs")["metadata"]["uid"]
        _touched(cluster, "runs")
        other = (None, before)
        assert until(
            lambda: (
                cluster.workload("team-vision", "runs").get("metadata", {}).get("uid") not in other
            )
        )
        left = ["runs", "waits"]  # either may be the first in the queue now
        while left:
            [name] = until(lambda: [each for each in left if started(cluster, "vision", each)])
            assert until(lambda name=name: not _suspended(cluster, name))
            cluster.api.request("DELETE", f"{JOBS}/{name}")
            left.remove(name)
