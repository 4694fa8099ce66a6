"""The role of docs/cluster.md for whoever looks at a whole cluster, at a real API server."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml

from tests.support.patience import until
from tests.support.recording import CHECKOUT
from tests.support.team_server import As, refusal, team_server

JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-vision/trainjobs"
JOB = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "attack"},
    "spec": {"runtimeRef": {"name": "torch-distributed"}},
}


@pytest.fixture(scope="module")
def somebody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[As]:
    """A member of the group of the page, without AWS's policy."""
    page = (CHECKOUT / "docs/cluster.md").read_text()
    [text] = re.findall(r"^```yaml\n(apiVersion: rbac.*?)^```", page, re.MULTILINE | re.DOTALL)
    with team_server(tmp_path_factory.mktemp("lookers")) as made:
        for each in yaml.safe_load_all(text):
            made.put(each)
        found = As(made.server, "on call", "lookers")
        assert until(lambda: not refusal(found, "GET", JOBS))
        yield found


@pytest.mark.parametrize(
    "path", [JOBS, JOBS.replace("/namespaces/team-vision", ""), "/api/v1/nodes"]
)
def test_it_reads_jobs_and_nodes(somebody: As, path: str) -> None:
    assert somebody.request("GET", path)["items"] == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/namespaces/team-vision/secrets"),
        ("POST", JOBS),
        ("DELETE", f"{JOBS}/train"),
        ("DELETE", "/api/v1/nodes/n"),
    ],
)
def test_it_reads_no_secrets_and_changes_nothing(somebody: As, method: str, path: str) -> None:
    assert "forbidden" in refusal(somebody, method, path, JOB if method == "POST" else None)
