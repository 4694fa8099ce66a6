"""`trainyard mirror`: what nodes pull is listed, and copied once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from development.mirror import CRANE as STAND_IN
from rehearsal import paths
from rehearsal.aws import registry
from rehearsal.aws.operations import CHECKS, Call, Refused
from tests.rehearsal.aws_world import Account, served, speak_to
from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from tests.trainyard.operations.terminal import Terminal
from tests.trainyard.operations.test_words import STACK_FILE
from trainyard.decide import plan_stack
from trainyard.operations.images import builders, copies
from trainyard.operations.reach.stack import read_stack
from trainyard.plans.images import ecr_region, parts

CRANE = shutil.which("crane", path=f"{paths.BIN}:{os.environ['PATH']}")
REGISTRY = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com"
MIRRORED = STACK_FILE.replace(
    "    storage:\n", f"    artifacts: {{images: {REGISTRY}/mirror}}\n    storage:\n"
).partition("      theirs:")[0]
KARPENTER = "mirror/public.ecr.aws/karpenter/controller"
THEIRS = "999999999999"
KEY = "arn:aws:kms:ap-northeast-2:123456789012:key/0123abcd-01ab-23cd-45ef-0123456789ab"
OF_EKS = "602401143452.dkr.ecr.us-west-2.amazonaws.com"
ANSWERS_KNOWN = f"""\
#!{sys.executable} -IS
# Private registries of ECR answer whom they know; the image itself is empty.
import json, os, sys, urllib.request

_, word, source, *target = sys.argv
config = json.load(open(os.environ["DOCKER_CONFIG"] + "/config.json"))
known = {{**config["auths"], **config["credHelpers"]}}
host = source.partition("/")[0]
print(word, source, file=open("crane.log", "a"))
if ".dkr.ecr." in host and host not in known:
    sys.exit("401 Unauthorized: Not Authorized")
if source in os.environ.get("BROKEN", "").split():
    sys.exit(3)
kind = "application/vnd.oci.image.manifest.v1+json"
of = source.partition("@")[0] + os.environ.get("MOVED", "")
text = json.dumps({{"mediaType": kind, "layers": [], "of": of}}).encode()
if word == "manifest":
    sys.exit(print(text.decode(), end=""))
host, _, name = target[0].partition("/")
reached = host if ".dkr.ecr." not in host else os.environ["AWS_ENDPOINT_URL"].rpartition("/")[2]
repository, _, tag = name.rpartition(":")
request = urllib.request.Request(
    f"http://{{reached}}/v2/{{repository}}/manifests/{{tag}}",
    data=text,
    headers={{"Authorization": "Basic " + known[host]["auth"], "Content-Type": kind}},
    method="PUT",
)
urllib.request.urlopen(request)
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.dev.yaml").write_text(MIRRORED)
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def account(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    (state := checkout / "state").mkdir()
    with served(state, monkeypatch) as found:
        paths.remember(replace(paths.world(), account_port=int(found.url.rpartition(":")[2])))
        speak_to(found, monkeypatch)
        yield found


def crane(at: Path, patch: pytest.MonkeyPatch, text: str) -> None:
    """A crane of that text, first on PATH."""
    (at / "bin").mkdir()
    (at / "bin/crane").write_text(text)
    (at / "bin/crane").chmod(0o755)
    patch.setenv("PATH", f"{at / 'bin'}:{os.environ['PATH']}")


def test_a_list_asks_nobody_and_names_each_image_once(checkout: Path, capsys: Any) -> None:
    assert run_word("mirror", ["dev", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    images = [each["image"] for each in listed]
    assert len(images) == len({*images}) > 5 and "registry.example.com/train:1" in images
    assert all(each["copy"].startswith(f"{REGISTRY}/mirror/") for each in listed)


def test_the_image_of_notebooks_is_copied_for_whoever_asks(checkout: Path, capsys: Any) -> None:
    """No plan has it, and it is large."""
    copy = f"{REGISTRY}/mirror/nvcr.io/nvidia/pytorch:25.10-py3"
    assert run_word("mirror", ["dev", "--list"]) == 0
    assert copy not in capsys.readouterr().out
    assert run_word("mirror", ["dev", "--list", "--notebook"]) == 0
    assert copy in capsys.readouterr().out


def test_a_list_needs_no_registry_for_copies(checkout: Path, capsys: Any) -> None:
    (checkout / "Pulumi.dev.yaml").write_text(STACK_FILE.partition("      theirs:")[0])
    assert run_word("mirror", ["dev", "--list"]) == 0
    said = capsys.readouterr().out
    assert "public.ecr.aws/karpenter/controller:" in said and said.rstrip().endswith("images")
    assert run_word("mirror", ["dev", "--yes"]) == 1
    said = capsys.readouterr().err
    assert "Fix: add artifacts: {images: <account>.dkr.ecr.ap-northeast-2" in said
    assert said.endswith("Nothing was copied.\n")


@pytest.mark.skipif(CRANE is None, reason="python -m rehearsal build --also crane")
def test_what_is_missing_is_copied_once(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    crane(checkout, monkeypatch, STAND_IN.format(crane=CRANE))
    ecr = account.client("ecr")
    assert run_word("mirror", ["dev", "--yes"]) == 0, capsys.readouterr()
    first = capsys.readouterr().out
    repositories = {
        one["repositoryName"]: one for one in ecr.describe_repositories()["repositories"]
    }
    assert repositories[KARPENTER]["imageTagMutability"] == "IMMUTABLE"
    [made] = ecr.describe_images(repositoryName=KARPENTER)["imageDetails"]
    assert made["imageTags"] == ["1.14.1"]
    number = first.splitlines()[-1].split()[0]
    assert f"\n{number} of {number} images are missing\n" in first
    assert f"  {made['imageDigest']}\n" in first
    assert run_word("mirror", ["dev", "--yes"]) == 0
    assert capsys.readouterr().out == f"0 of {number} images are missing\n"
    ecr.batch_delete_image(repositoryName=KARPENTER, imageIds=[{"imageTag": "1.14.1"}])
    assert run_word("mirror", ["dev", "--yes"]) == 0
    assert f"1 of {number} images are missing" in capsys.readouterr().out


def test_private_registries_are_asked_with_a_token_of_their_region(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The image of EKS's registry comes without a login of the person."""
    crane(checkout, monkeypatch, ANSWERS_KNOWN)
    monkeypatch.setenv("DOCKER_CONFIG", str(checkout / "nobody"))
    assert run_word("mirror", ["dev", "--yes"]) == 0, capsys.readouterr()
    assert f"copy {OF_EKS}/" in (checkout / "crane.log").read_text()
    names = [one["repositoryName"] for one in _repositories(account)]
    assert f"mirror/{OF_EKS}/eks/aws-efa-k8s-device-plugin" in names


def test_without_a_token_of_their_region_the_other_images_are_copied(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A policy of the company may refuse calls in another region."""
    crane(checkout, monkeypatch, ANSWERS_KNOWN)
    monkeypatch.setenv("DOCKER_CONFIG", str(checkout / "nobody"))
    asked = copies.ecr_region

    def nowhere(host: str) -> str | None:
        return "nowhere of AWS" if host == OF_EKS else asked(host)

    monkeypatch.setattr(copies, "ecr_region", nowhere)
    assert run_word("mirror", ["dev", "--yes"]) == 1
    said = capsys.readouterr().err
    assert f"{OF_EKS}: no token of ECR in nowhere of AWS: " in said
    assert "\n1 of " in said and f"\n  {OF_EKS}/eks/aws-efa-k8s-device-plugin:" in said
    assert _tags(account, KARPENTER) == ["1.14.1"]


def test_an_image_that_fails_stops_no_other_and_is_named_at_the_end(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    crane(checkout, monkeypatch, ANSWERS_KNOWN)
    monkeypatch.setenv(
        "BROKEN", "registry.example.com/train:1 public.ecr.aws/karpenter/controller:1.14.1"
    )
    assert run_word("mirror", ["dev", "--yes"]) == 1
    end = capsys.readouterr().err.splitlines()[-3:]
    assert end[0].startswith("2 of ") and end[0].endswith(" images were not copied:")
    assert end[1].startswith("  public.ecr.aws/karpenter/controller:1.14.1 ")
    assert end[2].startswith("  registry.example.com/train:1 ")
    assert all("ended with 3; its reason is above" in line for line in end[1:])
    monkeypatch.delenv("BROKEN")
    assert run_word("mirror", ["dev", "--yes"]) == 0
    assert capsys.readouterr().err.count("\n") == 2  # the two that were missing
    assert _tags(account, KARPENTER) == ["1.14.1"]


def test_an_image_that_was_pushed_anew_under_its_tag_is_named(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Its copy stays, and nodes go on pulling it. Images that Trainyard pins are not asked for."""
    crane(checkout, monkeypatch, ANSWERS_KNOWN)
    assert [run_word("mirror", ["dev", "--yes"]) for _ in range(2)] == [0, 0], capsys.readouterr()
    monkeypatch.setenv("MOVED", "again")
    assert run_word("mirror", ["dev", "--yes"]) == 1
    [*_, said] = capsys.readouterr().err.splitlines()
    assert said.startswith("registry.example.com/train:1 is another image now, sha256:")
    monkeypatch.setenv("BROKEN", "registry.example.com/train:1")
    assert run_word("mirror", ["dev", "--yes"]) == 0
    assert "train:1: not compared with its copy: crane manifest ended" in capsys.readouterr().err


def test_the_digest_of_now_is_copied_beside_the_first_image_of_its_tag(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The repository keeps its tags, and the pull goes by the digest."""
    crane(checkout, monkeypatch, ANSWERS_KNOWN)
    assert run_word("mirror", ["dev", "--yes"]) == 0, capsys.readouterr()
    monkeypatch.setenv("MOVED", "again")
    assert run_word("mirror", ["dev", "--yes"]) == 1
    today = capsys.readouterr().err.splitlines()[-1].partition(" now, ")[2].partition(",")[0]
    file = checkout / "Pulumi.dev.yaml"
    file.write_text(MIRRORED.replace("train:1", f"train:1@{today}"))
    assert run_word("mirror", ["dev", "--yes"]) == 0, capsys.readouterr()
    ecr, name = account.client("ecr"), "mirror/registry.example.com/train"
    found = ecr.describe_images(repositoryName=name)["imageDetails"]
    tags = {each["imageTags"][0]: each["imageDigest"] for each in found}
    assert len(tags) == 2 and tags["1"] != today
    assert tags[today.replace(":", "-")] == today
    capsys.readouterr()
    assert run_word("mirror", ["dev", "--yes"]) == 0
    assert capsys.readouterr().out.startswith("0 of ")


def test_a_login_of_the_person_that_lasts_is_kept_and_an_old_token_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A helper of Docker makes new tokens; a token of `docker login` is good for 12 hours."""
    old = {"auths": {"a": {"auth": "old"}, "b": {}, "t": {}, "d": {"auth": "mine"}}}
    helpers = {"credsStore": "osxkeychain", "credHelpers": {"b": "ecr-login", "t": "ecr-login"}}
    (tmp_path / "config.json").write_text(json.dumps(old | helpers))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    a, b, t = (builders.Registry(host=each, encrypted=True, auth=f"new {each}") for each in "abt")
    with builders._private_folder(t, [a, b]) as folder:
        config = json.loads((folder / "config.json").read_text())
    assert config == {
        "auths": {**old["auths"], "a": {"auth": "new a"}, "t": {"auth": "new t"}},
        "credHelpers": {"b": "ecr-login", "d": "osxkeychain"},
    }


@pytest.mark.parametrize(
    ("registry", "region"),
    [
        (OF_EKS, "us-west-2"),
        ("918309763551.dkr.ecr.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("602401143452.dkr.ecr-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("public.ecr.aws", None),
        ("602401143452.dkr.ecr.us-west-2.amazonaws.com.example.com", None),
    ],
)
def test_a_private_registry_of_ecr_is_known_by_its_name(registry: str, region: str | None) -> None:
    assert ecr_region(registry) == region


def test_the_crane_of_the_rehearsal_pulls_from_no_private_registry_without_a_token(
    tmp_path: Path,
) -> None:
    """As crane says it: GET https://<registry>/v2/: unexpected status code 401 Unauthorized."""
    (tmp_path / "genuine").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "genuine").chmod(0o755)
    script = STAND_IN.format(crane=tmp_path / "genuine")

    def pull(auths: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        (tmp_path / "config.json").write_text(json.dumps({"auths": auths}))
        command = ["sh", "-c", script, "crane", "copy", f"{OF_EKS}/eks/image:1", "here/image:1"]
        env = {**os.environ, "DOCKER_CONFIG": str(tmp_path)}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    refused = pull({"public.ecr.aws": {"auth": "x"}})
    assert refused.returncode == 1 and "401 Unauthorized" in refused.stderr
    assert pull({OF_EKS: {"auth": "x"}}).returncode == 0


def _repositories(account: Account) -> list[dict[str, Any]]:
    return account.client("ecr").describe_repositories()["repositories"]


def _tags(account: Account, repository: str) -> list[str]:
    found = account.client("ecr").describe_images(repositoryName=repository)["imageDetails"]
    return [tag for each in found for tag in each["imageTags"]]


def test_without_crane_the_fix_is_said(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert run_word("mirror", ["dev", "--yes"]) == 1
    assert "crane is not on PATH" in capsys.readouterr().err
    assert account.client("ecr").describe_repositories()["repositories"] == []


def test_nothing_is_copied_without_a_yes(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    crane(checkout, monkeypatch, "#!/bin/sh\nexit 3\n")
    Terminal(monkeypatch, answer="n")
    assert run_word("mirror", ["dev"]) == 3
    assert "Nothing was copied." in capsys.readouterr().out
    assert account.client("ecr").describe_repositories()["repositories"] == []


@pytest.fixture
def theirs(account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    """The registry of another account, which has no repository yet."""
    file = checkout / "Pulumi.dev.yaml"
    file.write_text(MIRRORED.replace("123456789012.dkr", f"{THEIRS}.dkr"))
    crane(checkout, monkeypatch, ANSWERS_KNOWN)
    return account


def _fill(account: Account) -> None:
    """Make the repositories of the other account that all copies need."""
    for copy in plan_stack(read_stack("dev").reading).accepted().copies:
        name = parts(copy.copy).repository
        account.client("ecr").create_repository(registryId=THEIRS, repositoryName=name)


def test_what_the_registry_of_another_account_lacks_is_listed_before_anything_is_copied(
    theirs: Account, capsys: Any
) -> None:
    assert run_word("mirror", ["dev", "--yes"]) == 1
    said = capsys.readouterr().err
    assert f"is a registry of account {THEIRS}, in which arn:aws:iam::123456789012:" in said
    assert f", {KARPENTER}, " in said and "Fix: let its owner make them, " in said
    assert _repositories(theirs) == []


def test_copies_go_to_repositories_of_another_account(
    theirs: Account, checkout: Path, capsys: Any
) -> None:
    _fill(theirs)
    assert run_word("mirror", ["dev", "--yes"]) == 0, capsys.readouterr()
    assert run_word("mirror", ["dev", "--yes"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 of ")


def test_who_may_not_push_to_another_account_learns_it_once(
    theirs: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def no(call: Call) -> None:
        raise Refused(
            "AccessDeniedException", f"{call.principal.arn} is not authorized", status=400
        )

    _fill(theirs)
    monkeypatch.setitem(CHECKS, ("ecr", "InitiateLayerUpload"), [no])
    assert run_word("mirror", ["dev", "--yes"]) == 1
    said = capsys.readouterr().err
    assert (
        f"may not push to mirror/{OF_EKS}/eks/aws-efa-k8s-device-plugin of account {THEIRS}" in said
    )
    assert "AccessDeniedException. Fix: let the owner of the registry allow it" in said
    assert "ecr:BatchGetImage, " in said  # ECR user guide, image-push-iam
    assert said.count("ecr:PutImage") == 1 and not (checkout / "crane.log").exists()


@pytest.mark.parametrize("key", [None, KEY])
def test_a_new_repository_is_as_the_stack_wants_its_own(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, key: str | None
) -> None:
    file = checkout / "Pulumi.dev.yaml"
    wanted = f"    kms_key_arn: {key}\n    artifacts:" if key else "    artifacts:"
    tags = "config:\n  aws:defaultTags: {tags: {cost-center: vision}}\n"
    file.write_text(MIRRORED.replace("    artifacts:", wanted).replace("config:\n", tags))
    crane(checkout, monkeypatch, ANSWERS_KNOWN)
    assert run_word("mirror", ["dev", "--yes"]) == 0, capsys.readouterr()
    [made] = [one for one in _repositories(account) if one["repositoryName"] == KARPENTER]
    assert made["imageTagMutability"] == "IMMUTABLE"
    assert made["imageScanningConfiguration"] == {"scanOnPush": True}
    encrypted = {"encryptionType": "KMS", "kmsKey": key} if key else {"encryptionType": "AES256"}
    assert made["encryptionConfiguration"] == encrypted
    found = account.client("ecr").list_tags_for_resource(resourceArn=made["repositoryArn"])["tags"]
    assert {each["Key"]: each["Value"] for each in found} == {
        "Name": "dev-mirror",
        "cost-center": "vision",
        "trainyard:name": "mirror",
        "trainyard:project": "trainyard",
        "trainyard:stack": "dev",
    }


def test_images_that_a_pull_through_rule_imports_are_not_copied(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    upstream = "public.ecr.aws"
    rule = {"ecrRepositoryPrefix": f"mirror/{upstream}", "upstreamRegistryUrl": upstream}
    monkeypatch.setattr(registry, "CACHE_RULES", [rule])
    crane(checkout, monkeypatch, ANSWERS_KNOWN)
    assert run_word("mirror", ["dev", "--yes"]) == 0, capsys.readouterr()
    said = capsys.readouterr().out
    assert "pull-through rules import public.ecr.aws/karpenter/controller:1.14.1" in said
    names = [one["repositoryName"] for one in _repositories(account)]
    assert names and not [name for name in names if upstream in name]


def test_programs_get_every_image_with_the_digest_of_its_copy(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    crane(checkout, monkeypatch, ANSWERS_KNOWN)
    monkeypatch.setenv("BROKEN", "registry.example.com/train:1")
    assert run_word("mirror", ["dev", "--json", "--yes"]) == 1
    listed = {each["image"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed.pop("registry.example.com/train:1")["digest"] is None
    [made] = account.client("ecr").describe_images(repositoryName=KARPENTER)["imageDetails"]
    assert listed["public.ecr.aws/karpenter/controller:1.14.1"]["digest"] == made["imageDigest"]
    assert all(each["digest"].startswith("sha256:") for each in listed.values())
    monkeypatch.delenv("BROKEN")
    assert run_word("mirror", ["dev", "--json", "--yes"]) == 0
    again = {each["image"]: each for each in json.loads(capsys.readouterr().out)}
    assert again.keys() > listed.keys() and again.items() > listed.items()
