"""`make mirror`: what nodes pull is listed, and copied once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from operations import mirror
from rehearsal import paths
from rehearsal.commands.mirror import CRANE as STAND_IN
from tests.operations.terminal import Terminal
from tests.operations.test_words import STACK_FILE
from tests.rehearsal.aws_world import Account, served, speak_to
from tests.support.recording import CHECKOUT

CRANE = shutil.which("crane", path=f"{paths.BIN}:{os.environ['PATH']}")
REGISTRY = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com"
MIRRORED = STACK_FILE.replace(
    "    storage:\n", f"    artifacts: {{images: {REGISTRY}/mirror}}\n    storage:\n"
).partition("      theirs:")[0]
KARPENTER = "mirror/public.ecr.aws/karpenter/controller"


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
    assert mirror.main(["dev", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    images = [each["image"] for each in listed]
    assert len(images) == len({*images}) > 5 and "registry.example.com/train:1" in images
    assert all(each["copy"].startswith(f"{REGISTRY}/mirror/") for each in listed)


def test_a_list_needs_no_registry_for_copies(checkout: Path, capsys: Any) -> None:
    (checkout / "Pulumi.dev.yaml").write_text(STACK_FILE.partition("      theirs:")[0])
    assert mirror.main(["dev", "--list"]) == 0
    said = capsys.readouterr().out
    assert "public.ecr.aws/karpenter/controller:" in said and said.rstrip().endswith("images")
    assert mirror.main(["dev", "--yes"]) == 1
    said = capsys.readouterr().err
    assert "Fix: add artifacts: {images: <account>.dkr.ecr.ap-northeast-2" in said
    assert said.endswith("Nothing was copied.\n")


@pytest.mark.skipif(CRANE is None, reason="python -m rehearsal build --also crane")
def test_what_is_missing_is_copied_once(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    crane(checkout, monkeypatch, STAND_IN.format(crane=CRANE))
    ecr = account.client("ecr")
    assert mirror.main(["dev", "--yes"]) == 0, capsys.readouterr()
    first = capsys.readouterr().out
    repositories = {
        one["repositoryName"]: one for one in ecr.describe_repositories()["repositories"]
    }
    assert repositories[KARPENTER]["imageTagMutability"] == "IMMUTABLE"
    [made] = ecr.describe_images(repositoryName=KARPENTER)["imageDetails"]
    assert made["imageTags"] == ["1.14.1"]
    number = first.splitlines()[-1].split()[0]
    assert first.rstrip().endswith(f"{number} of {number} images are missing")
    assert mirror.main(["dev", "--yes"]) == 0
    assert capsys.readouterr().out == f"0 of {number} images are missing\n"
    ecr.batch_delete_image(repositoryName=KARPENTER, imageIds=[{"imageTag": "1.14.1"}])
    assert mirror.main(["dev", "--yes"]) == 0
    assert f"1 of {number} images are missing" in capsys.readouterr().out


def test_a_copy_that_fails_is_said(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    crane(checkout, monkeypatch, "#!/bin/sh\nexit 3\n")
    assert mirror.main(["dev", "--yes"]) == 1
    assert "ended with 3; its reason is above" in capsys.readouterr().err


def test_without_crane_the_fix_is_said(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert mirror.main(["dev", "--yes"]) == 1
    assert "crane is not on PATH" in capsys.readouterr().err
    assert account.client("ecr").describe_repositories()["repositories"] == []


def test_nothing_is_copied_without_a_yes(
    account: Account, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    crane(checkout, monkeypatch, "#!/bin/sh\nexit 3\n")
    Terminal(monkeypatch, answer="n")
    assert mirror.main(["dev"]) == 1
    assert "Nothing was copied." in capsys.readouterr().out
    assert account.client("ecr").describe_repositories()["repositories"] == []


def test_a_registry_of_another_account_is_refused_before_anything_is_copied(
    account: Account, checkout: Path, capsys: Any
) -> None:
    file = checkout / "Pulumi.dev.yaml"
    file.write_text(MIRRORED.replace("123456789012.dkr", "999999999999.dkr"))
    assert mirror.main(["dev", "--yes"]) == 1
    said = capsys.readouterr().err
    assert "is a registry of account 999999999999, and the caller is in 123456789012" in said
    assert account.client("ecr").describe_repositories()["repositories"] == []
