"""`trainyard mirror --charts`: the charts that Pulumi installs are copied to where the stack file says."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rehearsal import paths
from tests.rehearsal.aws_world import Account, served, speak_to
from tests.support.recording import CHECKOUT
from tests.support.stackfile import Edit, at, environment_plan, reading
from tests.support.teams import with_queues
from tests.support.tool import run_word
from tests.trainyard.operations.test_words import STACK_FILE
from trainyard.catalog import versions
from trainyard.derive.charts import public_charts
from trainyard.plans.controllers import ChartPlan

HOST = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com"
HELM = f"""\
#!{sys.executable} -IS
# A chart is a folder with its name and its version; a registry is a file of lines.
import io, json, os, sys, tarfile

print(*sys.argv[1:], file=open("helm.log", "a"))
word, rest = sys.argv[1], sys.argv[2:]
if word == "show":
    name, version = rest[1].rpartition("/")[2], rest[3]
    known = open("registry").read().split() if os.path.exists("registry") else []
    sys.exit(0 if f"{{name}}-{{version}}.tgz" in known else 1)
if word == "push":
    if "--registry-config" in rest:
        config = json.load(open(rest[3]))
        assert config["auths"][rest[1].removeprefix("oci://").partition("/")[0]]["auth"]
    sys.exit(print(os.path.basename(rest[0]), file=open("registry", "a")))
name = rest[0].rpartition("/")[2]
if name == os.environ.get("BROKEN"):
    sys.exit(3)
version, to = (rest[rest.index(f"--{{each}}") + 1] for each in ("version", "destination"))
text = f"name: {{name}}\\nversion: {{version}}\\n".encode()
with tarfile.open(f"{{to}}/{{name}}-{{version}}.tgz", "w:gz") as archive:
    entry = tarfile.TarInfo(f"{{name}}/Chart.yaml")
    entry.size = len(text)
    archive.addfile(entry, io.BytesIO(text))
"""
NAMES = ["karpenter-crd", "karpenter", "nvidia-device-plugin", "kubeflow-trainer-2.1.0"]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/helm").write_text(HELM)
    (tmp_path / "bin/helm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    write(tmp_path, "charts")
    return tmp_path


@pytest.fixture
def account(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    (state := checkout / "state").mkdir()
    with served(state, monkeypatch) as found:
        paths.remember(replace(paths.world(), account_port=int(found.url.rpartition(":")[2])))
        speak_to(found, monkeypatch)
        yield found


def write(at: Path, place: str) -> None:
    """A stack file with charts in that place."""
    artifacts = f"    artifacts: {{charts: {place}}}\n    storage:\n"
    text = STACK_FILE.replace("    storage:\n", artifacts).partition("      theirs:")[0]
    (at / "Pulumi.dev.yaml").write_text(text)


def test_the_charts_of_a_stack_are_written_to_its_folder_once(checkout: Path, capsys: Any) -> None:
    assert run_word("mirror", ["dev", "--charts", "--yes"]) == 0, capsys.readouterr()
    said = capsys.readouterr().out
    assert "\n4 of 4 charts are missing\n" in said
    assert "  oci://public.ecr.aws/karpenter/karpenter-crd " in said
    for name in NAMES:
        assert (checkout / "charts" / name / "Chart.yaml").exists()
    assert sorted(one.name for one in (checkout / "charts").iterdir()) == sorted(NAMES)
    pulled = (checkout / "helm.log").read_text()
    plugin = "nvidia-device-plugin --repo https://nvidia.github.io/k8s-device-plugin --version"
    assert f"pull {plugin} {versions.NVIDIA_DEVICE_PLUGIN} " in pulled
    assert run_word("mirror", ["dev", "--charts", "--yes"]) == 0
    assert capsys.readouterr().out == "0 of 4 charts are missing\n"
    assert run_word("check", ["dev"]) == 0, capsys.readouterr()


def test_programs_get_the_sum_of_each_archive(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("BROKEN", "karpenter")
    assert run_word("mirror", ["dev", "--charts", "--yes", "--json"]) == 1
    found = capsys.readouterr()
    listed = {each["chart"]: each for each in json.loads(found.out)}
    assert [*listed] == ["karpenter-crd", "nvidia-device-plugin", "kubeflow-trainer"]
    assert all(len(each["sha256"]) == len(hashlib.sha256().hexdigest()) for each in listed.values())
    assert found.err.endswith("not copied: karpenter\n") and "helm pull" in found.err
    assert not (checkout / "charts/karpenter").exists()


def test_a_chart_of_another_version_is_replaced(checkout: Path, capsys: Any) -> None:
    (old := checkout / "charts/karpenter").mkdir(parents=True)
    (old / "Chart.yaml").write_text("name: karpenter\nversion: 1.11.0\n")
    (old / "gone.yaml").write_text("")
    assert run_word("mirror", ["dev", "--charts", "--yes"]) == 0
    assert versions.KARPENTER in (old / "Chart.yaml").read_text()
    assert sorted(one.name for one in old.iterdir()) == ["Chart.yaml"]


def test_charts_go_to_a_registry_that_the_person_is_logged_in_to(
    checkout: Path, capsys: Any
) -> None:
    write(checkout, "oci://registry.example.com:5000/charts/")
    assert run_word("mirror", ["dev", "--charts", "--yes"]) == 0, capsys.readouterr()
    log = (checkout / "helm.log").read_text()
    assert log.count("push ") == 4 and "--registry-config" not in log
    assert ".tgz oci://registry.example.com:5000/charts\n" in log
    assert run_word("mirror", ["dev", "--charts", "--yes"]) == 0
    assert capsys.readouterr().out.endswith("\n0 of 4 charts are missing\n")


def test_without_a_place_or_without_helm_the_fix_is_said(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert run_word("mirror", ["dev", "--charts", "--yes"]) == 1
    assert "helm is not on PATH, which copies charts. Fix: " in capsys.readouterr().err
    (checkout / "Pulumi.dev.yaml").write_text(STACK_FILE.partition("      theirs:")[0])
    assert run_word("mirror", ["dev", "--charts", "--yes"]) == 1
    assert "names no place for charts. Fix: add artifacts: {charts: " in capsys.readouterr().err


def _of_plan(*edits: Edit) -> list[ChartPlan]:
    """The charts of a plan that are not in this checkout."""
    plan = environment_plan(with_queues, *edits)
    found = (plan.karpenter.crds, plan.karpenter.controller, plan.device_plugins.nvidia)
    assert plan.queues
    return [*found, plan.trainer.chart, plan.queues.chart]


@pytest.mark.parametrize("release", versions.KARPENTERS)
def test_every_chart_of_a_plan_is_one_of_them(release: str) -> None:
    wanted = at("karpenter.version", release)
    config = reading(with_queues, wanted).config
    assert config and config.environment
    charts = public_charts(config.environment)
    in_folder = [f"/m/{one.folder}" for one in charts]
    assert in_folder == [one.chart for one in _of_plan(wanted, at("artifacts.charts", "/m"))]
    in_registry = [(f"oci://m/{one.name}", one.version) for one in charts]
    edit = at("artifacts.charts", "oci://m")
    assert in_registry == [(one.chart, one.version) for one in _of_plan(wanted, edit)]
    public = [(one.chart, one.version, one.repository) for one in _of_plan(wanted)]
    sources = [one.source for one in charts]
    assert public == [(one.chart, one.version, one.repository) for one in sources]


def test_a_registry_of_ecr_gets_repositories_and_a_token(
    checkout: Path, account: Account, capsys: Any
) -> None:
    write(checkout, f"oci://{HOST}/charts")
    assert run_word("mirror", ["dev", "--charts", "--yes"]) == 0, capsys.readouterr()
    made = account.client("ecr").describe_repositories()["repositories"]
    assert sorted(one["repositoryName"] for one in made) == [
        "charts/karpenter",
        "charts/karpenter-crd",
        "charts/kubeflow-trainer",
        "charts/nvidia-device-plugin",
    ]
    assert {one["imageTagMutability"] for one in made} == {"IMMUTABLE"}
