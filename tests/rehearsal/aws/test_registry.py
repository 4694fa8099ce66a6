"""The account's image registry: what ECR refuses it refuses, and what is pushed is an image of ECR."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import urllib3

from rehearsal import paths
from rehearsal.aws import principals
from tests.rehearsal.aws_world import Account, served, trust
from trainyard.objects.iam.policies import lifecycle

CRANE = shutil.which("crane", path=f"{paths.BIN}:{os.environ['PATH']}")
HTTP = urllib3.PoolManager()
CONFIG = b'{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}'
KIND = "application/vnd.docker.distribution.manifest.v2+json"


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


MANIFEST = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": KIND,
        "config": {
            "mediaType": "application/vnd.docker.container.image.v1+json",
            "size": len(CONFIG),
            "digest": digest(CONFIG),
        },
        "layers": [],
    }
).encode()


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as found:
        paths.remember(replace(paths.world(), account_port=int(found.url.rpartition(":")[2])))
        found.client("ecr").create_repository(
            repositoryName="dev/train", imageTagMutability="IMMUTABLE"
        )
        yield found


def token(account: Account, credentials: dict[str, str] | None = None) -> str:
    [found] = account.client("ecr", credentials).get_authorization_token()["authorizationData"]
    assert found["proxyEndpoint"] == account.url
    return found["authorizationToken"]


def ask(account: Account, auth: str, method: str, path: str, body: bytes = b"", **more: str) -> Any:
    headers = {"Authorization": f"Basic {auth}", **more}
    return HTTP.request(method, f"{account.url}/v2/{path}", body=body, headers=headers)


def push(account: Account, auth: str, tag: str, manifest: bytes = MANIFEST) -> Any:
    began = ask(account, auth, "POST", "dev/train/blobs/uploads/")
    if began.status == 202:
        at = began.headers["Location"].removeprefix("/v2/")
        ask(account, auth, "PATCH", at, CONFIG)
        ask(account, auth, "PUT", f"{at}?digest={digest(CONFIG)}")
    return ask(
        account, auth, "PUT", f"dev/train/manifests/{tag}", manifest, **{"Content-Type": KIND}
    )


def code(answer: Any) -> tuple[int, str]:
    return answer.status, json.loads(answer.data)["errors"][0]["code"]


def test_what_is_pushed_is_an_image_of_ecr_by_its_digest(account: Account) -> None:
    assert push(account, token(account), "one").status == 201
    which = [{"imageTag": "one"}]
    found = account.client("ecr").describe_images(repositoryName="dev/train", imageIds=which)
    assert found["imageDetails"][0]["imageDigest"] == digest(MANIFEST)
    read = ask(account, token(account), "GET", f"dev/train/manifests/{digest(MANIFEST)}")
    assert read.data == MANIFEST and read.headers["Content-Type"] == KIND


def test_a_tag_of_an_immutable_repository_stays(account: Account) -> None:
    push(account, token(account), "one")
    other = MANIFEST.replace(b'"layers": []', b'"layers":  []')
    assert code(push(account, token(account), "one", other)) == (400, "TAG_INVALID")


def test_a_lifecycle_policy_leaves_the_newest_images(account: Account) -> None:
    ecr = account.client("ecr")
    ecr.put_lifecycle_policy(repositoryName="dev/train", lifecyclePolicyText=lifecycle(2))
    for number in range(3):
        blanks = b" " * number
        push(
            account,
            token(account),
            f"v{number}",
            MANIFEST.replace(b'"layers":', b'"layers":' + blanks),
        )
    left = ecr.describe_images(repositoryName="dev/train")["imageDetails"]
    assert sorted(tag for each in left for tag in each["imageTags"]) == ["v1", "v2"]


def test_nobody_pushes_without_a_token_of_the_account(account: Account) -> None:
    wrong = base64.b64encode(b"AWS:123456789012-auth-token").decode()
    for auth in ("", wrong):
        answer = ask(account, auth, "GET", "")
        assert code(answer) == (401, "UNAUTHORIZED")
        assert answer.headers["WWW-Authenticate"].startswith("Basic")
    assert ask(account, token(account), "GET", "").status == 200


def test_a_repository_must_exist(account: Account) -> None:
    answer = ask(account, token(account), "POST", "dev/other/blobs/uploads/")
    assert code(answer) == (404, "NAME_UNKNOWN")


def test_a_role_pushes_only_what_its_policies_allow(account: Account) -> None:
    iam, allowed = account.client("iam"), {"Effect": "Allow", "Resource": "*"}
    role = iam.create_role(RoleName="pusher", AssumeRolePolicyDocument=trust("ec2.amazonaws.com"))
    policy = {
        "Version": "2012-10-17",
        "Statement": [{**allowed, "Action": "ecr:GetAuthorizationToken"}],
    }
    iam.put_role_policy(RoleName="pusher", PolicyName="p", PolicyDocument=json.dumps(policy))
    keys = principals.credentials(role["Role"]["Arn"], "session")
    auth = token(account, keys)
    assert code(ask(account, auth, "POST", "dev/train/blobs/uploads/")) == (403, "DENIED")


def test_a_layer_that_is_not_there_is_no_image(account: Account) -> None:
    auth = token(account)
    answer = ask(account, auth, "PUT", "dev/train/manifests/x", MANIFEST, **{"Content-Type": KIND})
    assert code(answer) == (400, "MANIFEST_INVALID")


def test_a_layer_with_another_digest_is_refused(account: Account) -> None:
    auth = token(account)
    at = ask(account, auth, "POST", "dev/train/blobs/uploads/").headers["Location"]
    put = f"{at.removeprefix('/v2/')}?digest={digest(b'other')}"
    assert code(ask(account, auth, "PUT", put, CONFIG)) == (400, "DIGEST_INVALID")


@pytest.mark.skipif(CRANE is None, reason="python -m rehearsal build --also crane")
def test_crane_pushes_and_pulls(account: Account, tmp_path: Path) -> None:
    (tmp_path / "layer").mkdir()
    (tmp_path / "layer/train.py").write_text("print(1)\n")
    tar = shutil.make_archive(str(tmp_path / "layer"), "tar", tmp_path / "layer")
    host = account.url.removeprefix("http://")
    (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": token(account)}}}))
    for words in (
        ["append", "--new_layer", tar, "--new_tag", f"{host}/dev/train:one"],
        ["pull", f"{host}/dev/train:one", str(tmp_path / "image.tar")],
    ):
        done = subprocess.run(
            [str(CRANE), *words],
            env={"DOCKER_CONFIG": str(tmp_path), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
