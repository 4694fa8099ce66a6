"""What the Secrets Store CSI driver and AWS's provider mount for a pod, and in which words they refuse."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.aws import secrets_store as add_on
from rehearsal.kube import ApiError
from rehearsal.kubelet import secrets_store
from rehearsal.kubelet.aws import AwsError
from rehearsal.kubelet.environment import NotReady
from trainyard.catalog.logs import symptom, symptoms
from trainyard.objects.iam.secrets import ManagedSecret, SecretFiles, secret_files

REGION = "us-east-2"
KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
HELD = {
    "vision/hf": json.dumps({"token": "hf-planted", "user": {"a": 1}, "my-key": "v"}).encode(),
    "vision/plain": b"wandb-planted",
}
POD = {"metadata": {"namespace": "team-vision", "name": "p"}, "spec": {}}
DAEMONS = (add_on.DRIVER, add_on.PROVIDER)


class Account:
    def secret_value(self, name: str, region: str, keys: dict[str, str]) -> bytes:
        assert (region, keys) == (REGION, KEYS)
        if name.startswith("nlp/"):
            raise AwsError(f"api error AccessDeniedException: User: p is not authorized: {name}")
        if name not in HELD:
            raise AwsError("api error ResourceNotFoundException: can't find the specified secret.")
        return HELD[name]


class Classes:
    """The API server as the driver sees it."""

    def __init__(self, *made: dict[str, Any]) -> None:
        self._made = {each["metadata"]["name"]: each for each in made}

    def request(self, method: str, path: str) -> dict[str, Any]:
        space, name = path.split("/")[5], path.rpartition("/")[2]
        if space != "team-vision" or name not in self._made:
            raise ApiError(404, {})
        return self._made[name]


def host(
    *made: dict[str, Any], keys: dict[str, str] = KEYS, daemons: tuple[str, ...] = DAEMONS
) -> Any:
    args = {"spec": {"containers": [{"args": ["--rotation-poll-interval=3600s"]}]}}
    return SimpleNamespace(
        account=Account(),
        zone=f"{REGION}a",
        world=SimpleNamespace(speed=60.0),
        pod_identity=lambda _: keys,
        daemon=lambda image: args if image in daemons else None,
        as_pod=lambda _: Classes(*made),
    )


def of(**secrets: ManagedSecret) -> SecretFiles:
    found = secret_files("train", secrets, REGION)
    assert found is not None
    return found


def mounted(files: SecretFiles, **node: Any) -> dict[str, bytes]:
    return secrets_store.files(host(files.object(), **node), POD, files.volume()["csi"])


TOKEN = ManagedSecret(secrets_manager="vision/hf", key="token")
PLAIN = ManagedSecret(secrets_manager="vision/plain")


def test_each_variable_finds_its_file() -> None:
    files = of(
        A=PLAIN,
        B=TOKEN,
        C=ManagedSecret(secrets_manager="vision/hf", key="my-key"),
        D=ManagedSecret(secrets_manager="vision/plain"),
        E=ManagedSecret(secrets_manager="vision/hf"),
    )
    found = mounted(files)
    values = {variable: found[file].decode() for variable, file in files.files.items()}
    assert values == {
        "A": "wandb-planted",
        "B": "hf-planted",
        "C": "v",
        "D": "wandb-planted",
        "E": HELD["vision/hf"].decode(),
    }


def test_a_secret_that_is_called_like_its_variable_is_mounted() -> None:
    """The provider refuses an alias that is also the name of a secret."""
    HELD["B"] = b'{"token": "x"}'
    try:
        files = of(B=ManagedSecret(secrets_manager="B", key="token"))
        assert mounted(files)[files.files["B"]] == b"x"
    finally:
        del HELD["B"]


REFUSALS: dict[str, tuple[ManagedSecret, dict[str, Any], str]] = {
    "another team's": (ManagedSecret(secrets_manager="nlp/hf"), {}, "refuses nlp/hf"),
    "none": (ManagedSecret(secrets_manager="vision/gone"), {}, "has no secret vision/gone"),
    "no JSON": (
        ManagedSecret(secrets_manager="vision/plain", key="token"),
        {},
        "vision/plain is no JSON object",
    ),
    "no such key": (ManagedSecret(secrets_manager="vision/hf", key="tok"), {}, "no key tok"),
    "no text": (ManagedSecret(secrets_manager="vision/hf", key="user"), {}, "key user is no text"),
    "no identity": (TOKEN, {"keys": {}}, "no identity in AWS with which vision/hf"),
    "no driver": (TOKEN, {"daemons": DAEMONS[1:]}, "does not run on the node"),
    "no provider": (TOKEN, {"daemons": DAEMONS[:1]}, "does not run on the node"),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_refusal_has_a_cause_that_status_names(why: str) -> None:
    secret, node, cause = REFUSALS[why]
    with pytest.raises(NotReady) as refused:
        mounted(of(TOKEN=secret), **node)
    words = {"namespace": "team-vision", "job": "j"}
    said, todo = symptom.read(symptoms.STARTING, str(refused.value), "", **words)
    assert cause in said.splitlines()[0]
    assert todo
    assert "planted" not in str(refused.value)


def test_a_class_of_another_namespace_is_not_found() -> None:
    files = of(TOKEN=TOKEN)
    pod = {**POD, "metadata": {"namespace": "team-nlp", "name": "p"}}
    with pytest.raises(NotReady, match="secretproviderclass team-nlp/train-secrets") as refused:
        secrets_store.files(host(files.object()), pod, files.volume()["csi"])
    words = {"namespace": "team-nlp", "job": "j"}
    said, _ = symptom.read(symptoms.STARTING, str(refused.value), "", **words)
    assert "does not exist: the stack of the job makes it" in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"usePodIdentity": "false"}, "An IAM role must be associated with service account"),
        ({"region": "eu-west-1"}, "ARN region must match region eu-west-1"),
        ({"objects": "[{}]"}, "Object name must be specified"),
        ({"objects": '[{"objectName": "a"}]'}, "Must use objectType"),
        ({"objects": '[{"objectName": "a", "objectType": "x"}]'}, "Invalid objectType: x"),
        ({"objects": "[a: b: c"}, "Failed to load SecretProviderClass"),
    ],
)
def test_the_provider_refuses_a_class_before_it_asks_aws(change: Any, words: str) -> None:
    arn = f"arn:aws:secretsmanager:{REGION}:123456789012:secret:vision/hf-AbCdEf"
    made = of(TOKEN=ManagedSecret(secrets_manager=arn))
    spc = made.object()
    spc["spec"]["parameters"] |= change
    with pytest.raises(NotReady, match=words):
        secrets_store.files(host(spc), POD, made.volume()["csi"])


def test_one_secret_is_listed_once() -> None:
    made = of(TOKEN=TOKEN).object()
    [one] = json.loads(made["spec"]["parameters"]["objects"])
    made["spec"]["parameters"]["objects"] = json.dumps([one, one])
    with pytest.raises(NotReady, match="Name already in use for objectName: vision/hf"):
        secrets_store.files(host(made), POD, of(TOKEN=TOKEN).volume()["csi"])


@pytest.mark.parametrize(
    ("csi", "words"),
    [
        ({"driver": "efs.csi.aws.com"}, "driver name efs.csi.aws.com not found"),
        ({"driver": add_on.CSI}, "secretProviderClass is not set"),
    ],
)
def test_the_driver_refuses_a_volume_that_is_not_its_own(csi: Any, words: str) -> None:
    with pytest.raises(NotReady, match=words):
        secrets_store.files(host(), POD, csi)


def test_the_driver_mounts_nothing_that_can_be_written_to() -> None:
    csi = of(TOKEN=TOKEN).volume()["csi"]
    with pytest.raises(NotReady, match="Readonly is not true"):
        secrets_store.files(host(of(TOKEN=TOKEN).object()), POD, {**csi, "readOnly": False})


def test_files_are_compared_as_often_as_the_add_on_says() -> None:
    assert secrets_store.rotation(host()) == 60.0
    assert secrets_store.rotation(host(daemons=())) is None
