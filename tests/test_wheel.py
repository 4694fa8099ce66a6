"""The tool as a wheel, in a folder that has nothing of this checkout."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.recording import CHECKOUT
from trainyard.catalog.versions import TRAINYARD

MIB = 2**20
JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: pytorch
              image: ghcr.io/team/train:1
              command: [torchrun, --nproc-per-node=8, train.py]
              resources: {limits: {nvidia.com/gpu: 8}}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the backend of pyproject.toml."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(CHECKOUT)], check=True)
    [made] = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked, beside a package `pulumi` that cannot be imported."""
    folder = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel).extractall(folder)
    for name in ("pulumi", "components", "stacks", "rehearsal", "policy_pack"):
        (folder / f"{name}.py").write_text(f"raise ImportError('{name} is not in a wheel')\n")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What somebody has who has the tool alone: a project file, a stack file and a job."""
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    for name in ("Pulumi.dev.yaml", "Pulumi.team-vision.yaml"):
        (tmp_path / name).write_text((CHECKOUT / name).read_text())
    return tmp_path


def _run(installed: Path, project: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "trainyard", *words],
        cwd=project,
        env={"PATH": "", "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["check", "dev"], "dev: no errors"),
        (["check", "team-vision"], "team-vision: no errors"),
        (["plan", "dev"], "g6e.48xlarge"),
        (["due", "dev"], "Kubernetes"),
        (["policy", "dev"], '"Statement"'),
        (["schema"], '"A stack file of Trainyard"'),
        (["completion", "bash"], "trainyard"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_a_word_about_files_needs_no_checkout_and_no_pulumi(
    installed: Path, project: Path, words: list[str], says: str
) -> None:
    assert says in _run(installed, project, *words)


def test_a_job_is_migrated_without_a_checkout(installed: Path, project: Path) -> None:
    (project / "job.yaml").write_text(JOB)
    assert "jobs:" in _run(installed, project, "migrate", "job.yaml")


def test_a_team_checks_and_plans_in_a_folder_with_three_files(
    installed: Path, project: Path, tmp_path: Path
) -> None:
    """Of its environment it has the contract alone."""
    contract = _run(installed, project, "contract", "--stack", "dev")
    (team := tmp_path / "team").mkdir()
    (team / "contract.yaml").write_text(contract)
    for name in ("Pulumi.yaml", "Pulumi.team-vision.yaml"):
        (team / name).write_text((project / name).read_text())
    file = team / "Pulumi.team-vision.yaml"
    named = "environment: dev\n    contract: contract.yaml\n"
    file.write_text(file.read_text().replace("environment: dev\n", named))
    assert "team-vision: no errors" in _run(installed, team, "check", "--stack", "team-vision")
    plans = [_run(installed, folder, "plan", "team-vision") for folder in (team, project)]
    assert plans[0] == plans[1] and "g6e" in plans[0]


def test_its_version_is_that_of_the_wheel_and_of_the_changelog(
    wheel: Path, installed: Path, project: Path
) -> None:
    version = TRAINYARD
    assert _run(installed, project, "--version") == f"trainyard {version}\n"
    assert wheel.name == f"trainyard-{version}-py3-none-any.whl"
    assert f"## {version} - " in (CHECKOUT / "CHANGELOG.md").read_text()


def test_it_has_the_package_alone_and_is_small(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"trainyard"}
    assert "trainyard/in_cluster/repair/repair.py" in names, "files of the programs in pods"
    assert wheel.stat().st_size <= 3 * MIB


def test_the_source_distribution_has_the_package_and_its_licence(tmp_path: Path) -> None:
    script = f"from flit_core.buildapi import build_sdist; print(build_sdist('{tmp_path}'))"
    subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, check=True, capture_output=True)
    [made] = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "trainyard/cli/main.py"} <= names
    assert not any(name.startswith(("tests", "components", "rehearsal")) for name in names)
