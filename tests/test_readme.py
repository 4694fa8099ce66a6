"""What the documents promise to type is there, and is run by a test."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from stacks.plan import plan_stack
from stacks.reports import check
from stacks.settings.reader import read
from tests.support.stackfile import at, errors

CHECKOUT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    CHECKOUT / name
    for name in ("README.md", "CONTRIBUTING.md", "docs/jobs.md", "rehearsal/README.md")
]
README = CHECKOUT / "README.md"
TARGETS = set(re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))


def _said(pattern: str) -> list[str]:
    return sorted({word for file in DOCUMENTS for word in re.findall(pattern, file.read_text())})


@pytest.mark.parametrize("word", _said(r"`make ([a-z-]+)"))
def test_every_make_word_of_the_documents_is_a_target(word: str):
    assert word in TARGETS


@pytest.mark.parametrize("word", _said(r"`make ([a-z-]+)"))
def test_every_make_word_names_commands_that_exist(word: str):
    done = subprocess.run(["make", "--dry-run", word], cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"\$\(", done.stdout)


@pytest.mark.parametrize("link", _said(r"\]\(([^)#:]+)\)"))
def test_every_link_leads_somewhere(link: str):
    assert any((file.parent / link).exists() for file in DOCUMENTS)


def test_the_first_command_of_a_pull_request_works_as_written():
    done = subprocess.run(
        ["make", "check", "STACK=dev"], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "make preview STACK=dev" in done.stdout


def test_the_errors_in_the_readme_are_those_of_make_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    text = (CHECKOUT / "Pulumi.dev.yaml").read_text()
    for right, wrong in (
        ("zone: ap-northeast-2a ", "zone: ap-northeast-2 "),
        ("[p5.48xlarge], ", "[p5.48xlarge], capacity: on-demand, "),
    ):
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    (tmp_path / "Pulumi.dev.yaml").write_text(text)
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    assert check.main(["dev"]) == 1
    [sample] = re.findall(r"```\n\$ make check\n(.*?)```", README.read_text(), re.DOTALL)
    printed = capsys.readouterr().out.splitlines()
    shown = [line for line in printed if not line.startswith("  warning")]
    assert len(shown) == 3 and sample.splitlines() == shown


def test_faults_of_the_rehearsal_are_named_as_the_command_takes_them():
    from rehearsal.__main__ import FAULTS

    text = (CHECKOUT / "rehearsal/README.md").read_text()
    assert {error for error in FAULTS if error in text} >= {
        "throttle",
        "lose-answer",
        "no-capacity",
        "vanish",
        "clear",
    }


def test_the_stack_file_of_the_readme_is_accepted():
    account, whole, part = re.findall(
        r"```yaml\n(.*?)```", (CHECKOUT / "README.md").read_text(), re.DOTALL
    )
    values = yaml.safe_load(whole)["config"] | yaml.safe_load(account)["config"]
    assert plan_stack(read(values, stack="readme", project="trainyard")).errors == ()
    values["trainyard:environment"] |= yaml.safe_load(part)
    written = datetime(2026, 11, 21, tzinfo=UTC)
    assert plan_stack(read(values, stack="readme", project="trainyard"), now=written).errors == ()


@pytest.mark.parametrize(
    "part",
    re.findall(r"```yaml\n(.*?)```", (CHECKOUT / "docs/jobs.md").read_text(), re.DOTALL),
    ids=lambda part: part.split()[1],
)
def test_every_job_of_the_documents_is_accepted(part: str):
    said = yaml.safe_load(part)
    edits = [at(f"jobs.{name}", job) for name, job in said["jobs"].items()]
    edits += [
        at(f"trainer.own_runtimes.{name}", own)
        for name, own in said.get("trainer", {}).get("own_runtimes", {}).items()
    ]
    assert errors(at("training_operator", {"version": "1.8.1"}), *edits) == []
