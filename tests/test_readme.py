"""What the documents promise to type is there, and is run by a test."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from stacks.plan import plan_stack
from stacks.settings.reader import read
from tests.support.stackfile import at, errors

CHECKOUT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    CHECKOUT / name
    for name in ("README.md", "CONTRIBUTING.md", "docs/jobs.md", "rehearsal/README.md")
]
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


@pytest.mark.parametrize("arguments", [[], ["help"]], ids=" ".join)
def test_make_prints_every_word_with_its_sentence_and_starts_nothing(
    arguments: list[str], tmp_path: Path
):
    shutil.copy(CHECKOUT / "Makefile", tmp_path)
    done = subprocess.run(["make", *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    rows = re.findall(r"^  make ([a-z-]+) +(\S.*)$", done.stdout, re.MULTILINE)
    assert {word for word, _ in rows} == TARGETS and len(rows) == len(TARGETS) > 15
    assert {*_said(r"`make ([a-z-]+)")} <= {word for word, _ in rows}
    columns = {
        line.index(text) for line in done.stdout.splitlines() for _, text in rows if text in line
    }
    assert len(columns) == 1, "the sentences are aligned"
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"], "nothing is installed"


@pytest.mark.parametrize("link", _said(r"\]\(([^)#:]+)\)"))
def test_every_link_leads_somewhere(link: str):
    assert any((file.parent / link).exists() for file in DOCUMENTS)


def test_the_first_command_of_a_pull_request_works_as_written():
    done = subprocess.run(
        ["make", "check", "STACK=dev"], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "make preview STACK=dev" in done.stdout


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
