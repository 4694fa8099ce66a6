"""What Kueue makes of a gang that runs while the CRDs of its Trainer change, and what the rule about it says."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controllers.test_kueue import job, losing_of, starts
from tests.support.kueue_server import KueueServer, kueue_server
from tests.support.patience import until
from tests.support.team_server import CHARTS
from trainyard.replacing.moving import RUNS

pytestmark = pytest.mark.apart

MOUNTS = {"name": "node", "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}
STORE: dict[str, Any] = {"volumes": [{"name": "scratch", "emptyDir": {}}], "containers": [MOUNTS]}
SECONDS = 15
"""A gang that is stopped is stopped within five."""


def _run_of(cluster: KueueServer) -> str:
    """What tells the Workload of the gang from any later one; empty while there is none."""
    return cluster.workload("team-vision", "run").get("metadata", {}).get("uid", "")


@pytest.mark.parametrize(("pod", "said"), [({}, []), (STORE, [f"team-vision/run ({RUNS})"])])
def test_kueue_stops_a_gang_that_mounts_something_and_leaves_another_alone(
    tmp_path: Path, pod: dict[str, Any], said: list[str]
) -> None:
    with kueue_server(tmp_path, "2.1.0") as cluster:
        asked = job(cluster, "vision", "run", 2)
        asked["spec"]["podTemplateOverrides"][0]["spec"] |= pod
        cluster.trainer.create(asked)
        assert starts(cluster, "vision", "run")
        assert losing_of(cluster) == said
        before = _run_of(cluster)
        assert before
        for file in CHARTS.glob("kubeflow-trainer-crds-2.3.0/templates/*.yaml"):
            cluster.api.apply(yaml.load(file.read_text(), yaml.CSafeLoader), manager="tests")
        if said:
            assert until(lambda: _run_of(cluster) != before)
        else:
            time.sleep(SECONDS)
            assert _run_of(cluster) == before
