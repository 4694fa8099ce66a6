"""What somebody of a team tries with secrets at a real API server, where its entry has `secrets`: each
attack is refused, and passes when its control is taken away. Which secret a pod can read is for IAM to
say: tests/rehearsal/aws/test_team_identity.py."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from rehearsal.aws.secrets_store import CRD
from rehearsal.kube import ApiError, Object
from tests.controllers.test_team_attacks import (
    CSI,
    FOREIGN,
    HOST,
    OWN,
    legacy_job,
    made,
    overridden,
    own_runtime,
    pod,
)
from tests.support.patience import until
from tests.support.team_server import (
    TeamServer,
    environment_with_secrets,
    refusal,
    team_server,
    without_rule,
)
from trainyard.objects.iam.secrets import GROUP, ManagedSecret, secret_files
from trainyard.objects.teams.team_access import role_name
from trainyard.objects.teams.team_admission import WITH_SECRETS

FILES = secret_files("train", {"T": ManagedSecret(secrets_manager="vision/hf")}, "us-east-2")
assert FILES
CLASS, OURS = FILES.object(), FILES.volume()
MESSAGE = WITH_SECRETS["volumes"].message
CLASSES = f"/apis/{GROUP}/v1/{OWN}/secretproviderclasses"


def _served(server: TeamServer) -> bool:
    try:
        return not refusal(server.admin, "POST", CLASSES, CLASS)
    except ApiError:
        return False


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with team_server(tmp_path_factory.mktemp("secrets"), environment_with_secrets) as server:
        server.put(CRD)
        assert until(lambda: _served(server))
        yield server


@pytest.mark.parametrize(
    "sound",
    [
        pod(volumes=[OURS]),
        overridden(volumes=[OURS]),
        legacy_job(volumes=[OURS]),
        own_runtime(volumes=[OURS]),
    ],
    ids=lambda body: body["kind"],
)
def test_pods_of_a_team_mount_secrets(teams: TeamServer, sound: Object) -> None:
    assert made(teams, sound) == ""


REFUSED: dict[str, Object] = {
    "A6 another csi volume in a pod": pod(volumes=[CSI]),
    "A6 another csi volume in a TrainJob": overridden(volumes=[OURS, CSI]),
    "A6 another csi volume in a PyTorchJob": legacy_job(volumes=[CSI]),
    "A9 hostPath in a TrainingRuntime": own_runtime(volumes=[OURS, HOST]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_volumes_are_refused_by_their_sentence(teams: TeamServer, case: str) -> None:
    assert MESSAGE in made(teams, REFUSED[case])


def test_without_its_rule_each_attack_passes(teams: TeamServer) -> None:
    with without_rule(teams, MESSAGE):
        for name, body in REFUSED.items():
            assert until(lambda body=body: not made(teams, body)), name
    for name, body in REFUSED.items():
        assert until(lambda body=body: bool(made(teams, body))), name


def test_a_team_makes_classes_in_its_own_namespace_only(teams: TeamServer) -> None:
    body, elsewhere = CLASS, CLASSES.replace(OWN, FOREIGN)
    for role in ("deployer", "member"):
        assert refusal(teams.of(role), "POST", CLASSES, body) == ""
        assert "cannot create" in refusal(teams.of(role), "POST", elsewhere, body)
        assert "cannot list" in refusal(teams.of(role), "GET", elsewhere)
    assert "cannot create" in refusal(teams.of("viewer"), "POST", CLASSES, body)
    assert teams.of("viewer").request("GET", CLASSES)["items"] == []


@pytest.mark.parametrize("role", ["viewer"])
def test_with_the_verb_a_viewer_makes_a_class(teams: TeamServer, role: str) -> None:
    """The control of the row above is the role, and nothing else."""
    whole = teams.objects[f"ClusterRole {role_name(role)}"]
    more: Any = copy.deepcopy(whole)
    more["rules"].append(
        {"apiGroups": [GROUP], "resources": ["secretproviderclasses"], "verbs": ["create"]}
    )
    teams.put(more)
    try:
        assert until(lambda: not refusal(teams.of(role), "POST", CLASSES, CLASS))
    finally:
        teams.put(whole)
    assert until(lambda: bool(refusal(teams.of(role), "POST", CLASSES, CLASS)))
