"""People submit with Kubeflow's own SDK: the version that is known to go with a Trainer release
finds our runtimes, and what it sends is accepted and becomes the pods that were asked for. That it
sees the end: tests/worlds/test_jobs_world.py.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from development import chart_objects
from rehearsal import paths
from tests.support.recording import CHECKOUT
from tests.support.trainer_server import TrainerServer, runtimes, trainer_server
from trainyard.catalog import versions
from trainyard.objects.jobs.pod_template import GPU

FOLDER = CHECKOUT / "tests" / "sdk"
SDK = {known.trainer: known.sdk for known in versions.KNOWN_GOOD}
V1 = "v1-1.8.1"
"""The SDK of the training-operator, as its requirements are called."""


def interpreter(version: str) -> Path:
    """A Python with one version of the SDK, made once; two versions of a package cannot live in one
    environment."""
    requirements = FOLDER / f"requirements-{version}.txt"
    made = (
        paths.CACHE / f"sdk-{version}-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:8]}"
    )
    if not made.exists():
        partial = made.with_name(f"{made.name}.{os.getpid()}")
        subprocess.run([sys.executable, "-m", "venv", partial], check=True)
        done = subprocess.run(
            [
                partial / "bin/python",
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-compile",
                "--require-hashes",
                "-r",
                requirements,
            ],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            pytest.skip(f"kubeflow {version} could not be installed: {done.stderr.strip()[-200:]}")
        partial.rename(made)
    return made / "bin/python"


def submitted(version: str, script: str, kubeconfig: str | Path, *words: str) -> dict[str, Any]:
    """What a script said with a version of the SDK."""
    command = [interpreter(version), FOLDER / script, kubeconfig, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_sdk_of_a_release_finds_our_runtimes_and_its_job_becomes_pods(
    trainer: TrainerServer,
) -> None:
    said = submitted(
        SDK[trainer.release],
        "submit.py",
        trainer.folder / "kubeconfig",
        "default",
        "own-torch",
        "8",
        "0",
    )
    assert said["runtimes"] == sorted(runtimes(trainer.release))
    assert (said["runtime"], said["nodes"], said["status"]) == ("own-torch", 2, "Created")
    for pod in trainer.pods(said["job"], 2):
        assert pod["spec"]["containers"][0]["resources"]["limits"][GPU] == "8"
        assert (
            pod["spec"]["restartPolicy"] == "Never"
        )  # which our runtime says: the gang restarts together


def test_the_sdk_of_the_training_operator_sends_what_its_crd_takes(tmp_path: Path) -> None:
    """What our twin of a TrainJob has too: a master, and the other nodes as workers."""
    with trainer_server(tmp_path) as server:
        crd = chart_objects.OWN / "training-operator/files/kubeflow.org_pytorchjobs.yaml"
        server.api.apply(yaml.load(crd.read_text(), yaml.CSafeLoader), manager="tests")
        said = submitted(V1, "submit_v1.py", tmp_path / "kubeconfig", "default", "8", "0")
        assert said == {"replicas": {"Master": 1, "Worker": 1}, "succeeded": False}
        stored = server.api.request(
            "GET", "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/by-sdk"
        )["spec"]
        for replica in stored["pytorchReplicaSpecs"].values():
            [container] = replica["template"]["spec"]["containers"]
            assert container["name"] == "pytorch" and container["resources"]["limits"] == {GPU: 8}
