"""The tool as a wheel, in a folder that has nothing of this checkout, and the Pulumi program that it
carries."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from development.wheel import IN_WHEEL, program_files
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
    return _built(CHECKOUT, tmp_path_factory.mktemp("wheel"))


def _built(source: Path, folder: Path) -> Path:
    """The wheel of a source, in a folder."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(source)], check=True)
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
        stdin=subprocess.DEVNULL,
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


MOST_SECONDS = 2
"""Bar for a word from the wheel: seconds of a CPU, which a busy machine does not lengthen much."""


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_an_environment_and_a_team_begin_in_an_empty_folder_within_seconds(
    installed: Path, tmp_path: Path
) -> None:
    given = [
        *("--region", "us-east-1", "--zone", "us-east-1a", "--public-cidrs", "203.0.113.7/32"),
        *("--account", "123456789012", "--source", "git+https://example.com/trainyard@v0.2.0"),
    ]
    seconds = {}
    for words, says in (
        (["new", "environment", *given], "Pulumi.dev.yaml"),
        (["check", "dev"], "dev: no errors"),
        (["plan", "dev"], "g6e.48xlarge"),
        (["new", "team", "--name", "vision"], "team-vision/train.py"),
        (["check", "team-vision"], "team-vision: no errors"),
        (["plan", "team-vision"], "on dev, us-east-1, at most 16 GPUs"),
    ):
        began = _seconds_of_children()
        assert says in _run(installed, tmp_path, *words)
        seconds[" ".join(words[:2])] = _seconds_of_children() - began
    assert [word for word, taken in seconds.items() if taken > MOST_SECONDS] == [], seconds


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


def test_it_carries_every_file_of_the_pulumi_program(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    listed = ["git", "ls-files", "__main__.py", "components", "stacks"]
    tracked = subprocess.run(listed, cwd=CHECKOUT, check=True, capture_output=True, text=True)
    carried = {
        name.removeprefix(f"{IN_WHEEL}/"): archive.read(name)
        for name in archive.namelist()
        if name.startswith(f"{IN_WHEEL}/")
    }
    assert {*tracked.stdout.split()} < {*carried}
    assert {*carried} == {str(file.relative_to(CHECKOUT)) for file in program_files()}
    assert {name: (CHECKOUT / name).read_bytes() for name in carried} == carried


RECORDED = """
import runpy, sys
from pathlib import Path
from tests.support.recording import configuration, record, stack_values

values = configuration(stack_values("dev"))
graph = record(lambda: runpy.run_path("__main__.py"), "dev", values, folder=Path())
print(graph.golden(), end="")
ours = ("trainyard", "stacks", "components")
loaded = [module for name, module in sys.modules.items() if name.partition(".")[0] in ours]
places = {Path(module.__file__).is_relative_to(sys.argv[1]) for module in loaded}
assert len(loaded) > 200 and places == {True}, places
"""
"""Records what the program of the current folder registers; fails where any of it is not in the folder of
the first argument."""


def test_a_project_without_a_checkout_runs_the_program_of_the_wheel(
    wheel: Path, tmp_path: Path
) -> None:
    """It registers what is recorded of the checkout, charts with their paths included."""
    own, project = tmp_path / "own", tmp_path / "project"
    zipfile.ZipFile(wheel).extractall(own)
    project.mkdir()
    (project / "Pulumi.dev.yaml").write_text((CHECKOUT / "Pulumi.dev.yaml").read_text())
    (project / "__main__.py").write_text("from trainyard.cli.program import run\n\nrun()\n")
    packages = ":".join(map(str, (own / IN_WHEEL, own, CHECKOUT)))
    done = subprocess.run(
        [sys.executable, "-P", "-c", RECORDED, str(own)],
        cwd=project,
        env={"PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (CHECKOUT / "tests/golden/dev.graph.json").read_text()
    charts = {*re.findall(r'"chart": "(\./.*)"', done.stdout)}
    assert charts and all((project / chart / "Chart.yaml").is_file() for chart in charts)


def test_the_extra_for_pulumi_has_the_releases_of_the_checkout() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    wanted = [each.replace(" ", "") for each in project["optional-dependencies"]["pulumi"]]
    pins = (CHECKOUT / "requirements/product.in").read_text().splitlines()
    assert wanted == [pin for pin in pins if pin.startswith("pulumi")]


def test_the_source_distribution_has_what_the_wheel_is_made_of(wheel: Path, tmp_path: Path) -> None:
    script = f"from development.wheel import build_sdist; print(build_sdist('{tmp_path}'))"
    subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, check=True, capture_output=True)
    [made] = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(tmp_path, filter="data")
    assert {"pyproject.toml", "README.md", "LICENSE", "trainyard/cli/main.py"} <= names
    assert not any(name.startswith(("tests", "rehearsal", "policy_pack")) for name in names)
    again = _built(tmp_path / made.name.removesuffix(".tar.gz"), tmp_path)
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist()
