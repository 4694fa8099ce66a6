"""The workflows of pull requests, nights and releases: pinned, and with words that exist."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.recording import CHECKOUT

FILES = sorted((CHECKOUT / ".github/workflows").glob("*.yaml"))
TEXT = "\n".join(file.read_text() for file in FILES)
JOBS: dict[str, Any] = {
    name: job for file in FILES for name, job in yaml.safe_load(file.read_text())["jobs"].items()
}
STEPS = [step for job in JOBS.values() for step in job.get("steps", ())]
WRITES = {
    "comment": ["id-token", "pull-requests"],
    "build": ["id-token", "attestations"],
    "publish": ["contents"],
    "prices": ["contents", "pull-requests"],
}
"""Job → what it may write."""


def test_every_action_is_pinned_by_its_commit_with_its_release_beside_it() -> None:
    used = re.findall(r"uses: ([^.].*)", TEXT)
    assert len(used) == sum("uses" in step for step in STEPS) >= 9
    assert [it for it in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v[\d.]+", it)] == []


def test_the_same_action_has_one_commit() -> None:
    pins = {step["uses"].partition("@")[::2] for step in STEPS if "uses" in step}
    assert len(pins) == len({name for name, _ in pins})


def test_every_make_word_and_module_of_the_workflow_exists() -> None:
    targets = re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    runs = "\n".join(step.get("run", "") for step in STEPS)
    words, modules = re.findall(r"make ([a-z-]+)", runs), re.findall(r"-m ((?:\w+\.)+\w+)", runs)
    assert words and set(words) <= set(targets)
    assert modules and all(importlib.util.find_spec(module) for module in modules)


@pytest.mark.parametrize("job", JOBS)
def test_every_job_ends_in_time_and_may_write_only_what_it_is_for(job: str) -> None:
    assert "uses" in JOBS[job] or JOBS[job]["timeout-minutes"] <= 90
    writes = [key for key, may in JOBS[job].get("permissions", {}).items() if may == "write"]
    assert writes == WRITES.get(job, [])


def test_no_workflow_may_write_as_a_whole_and_no_two_jobs_have_one_name() -> None:
    workflows = [yaml.safe_load(file.read_text()) for file in FILES]
    assert {tuple(each["permissions"].items()) for each in workflows} == {(("contents", "read"),)}
    assert len(JOBS) == sum(len(each["jobs"]) for each in workflows)


def test_a_release_is_built_after_all_shards_attested_and_then_published() -> None:
    release = yaml.safe_load((CHECKOUT / ".github/workflows/release.yaml").read_text())
    assert release[True] == {"push": {"tags": ["v*"]}}, "YAML reads `on` as true"
    called = CHECKOUT / release["jobs"]["shards"]["uses"]
    assert called in FILES and "workflow_call" in yaml.safe_load(called.read_text())[True]
    assert [job.get("needs") for job in release["jobs"].values()] == [None, "shards", "build"]
    steps = release["jobs"]["build"]["steps"]
    [attested] = [step for step in steps if "attest-build-provenance" in step.get("uses", "")]
    [kept] = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    assert attested["with"]["subject-path"] == "dist/*" and steps.index(attested) < steps.index(
        kept
    )


def test_the_shards_have_the_history_that_older_releases_need() -> None:
    for job in ("soak", "tests"):
        [checkout] = [each for each in JOBS[job]["steps"] if "checkout@" in each.get("uses", "")]
        assert checkout["with"] == {"fetch-depth": 0}


def git(folder: Path, *words: str) -> str:
    """What git says in a folder, without the settings of this machine."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    named = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *named, *words], cwd=folder, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout


def opened(folder: Path, requests: int) -> list[str]:
    """Runs the step that opens the pull request, with a gh that writes down what it is asked. `requests`:
    how many are open already."""
    said, tools = folder / "gh.txt", folder / "bin"
    tools.mkdir(exist_ok=True)
    listed = f'test "$2" != list || echo {requests}'
    (tools / "gh").write_text(f'#!/bin/sh\necho "$@" >> {said}\n{listed}\n')
    (tools / "gh").chmod(0o755)
    env = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "HOME": str(folder),
        "RUNNER_TEMP": str(folder),
        "GITHUB_REF_NAME": "main",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    [step] = [step for step in JOBS["prices"]["steps"] if "gh pr create" in step.get("run", "")]
    subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=folder / "work",
        env=env,
        check=True,
        capture_output=True,
    )
    return said.read_text().splitlines() if said.exists() else []


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with a file of prices, and the repository that it pushes to."""
    git(tmp_path, "init", "--bare", "origin.git")
    git(tmp_path, "clone", "origin.git", "work")
    prices = tmp_path / "work/trainyard/catalog/aws/on_demand.json"
    prices.parent.mkdir(parents=True)
    prices.write_text("[]\n")
    git(tmp_path / "work", "add", ".")
    git(tmp_path / "work", "commit", "--message", "first")
    git(tmp_path / "work", "push", "origin", "HEAD:main")
    return tmp_path


def test_a_month_without_a_new_price_opens_no_pull_request(clone: Path) -> None:
    assert opened(clone, 0) == []
    assert "prices" not in git(clone / "origin.git", "branch")


@pytest.mark.parametrize("requests", [0, 1])
def test_new_prices_are_one_commit_of_one_branch_and_one_pull_request(
    clone: Path, requests: int
) -> None:
    work = clone / "work"
    (work / "trainyard/catalog/aws/on_demand.json").write_text("[1]\n")
    (work / "other.txt").write_text("not a price\n")
    said = opened(clone, requests)
    assert [line.split()[1] for line in said] == ["list", *(["create"] if not requests else [])]
    changed = git(clone / "origin.git", "diff", "--name-only", "main", "prices").split()
    assert changed == ["trainyard/catalog/aws/on_demand.json"]


def test_what_needs_credentials_runs_only_where_there_is_a_role() -> None:
    of_pulumi = [step for step in STEPS if "pulumi preview" in step.get("run", "")]
    of_aws = [step for step in STEPS if "configure-aws" in step.get("uses", "")]
    assert {step["if"] for step in of_pulumi + of_aws} == {"vars.PREVIEW_ROLE_ARN"}


def test_every_stack_is_judged_and_only_those_are_previewed_that_an_empty_account_can_show() -> (
    None
):
    steps = [step["run"] for step in JOBS["stacks"]["steps"] if "run" in step]
    [judges] = [run for run in steps if "trainyard check" in run]
    assert (
        "for file in Pulumi.*.yaml" in judges
        and "trainyard check" in judges
        and "--policies" in judges
    )
    [previews] = [run for run in steps if "make preview" in run]
    # A command in the head of a loop may fail, and bash goes on with an empty list.
    assert previews.startswith("stacks=$(.venv/bin/python -m trainyard.reports.previewable)\n")
    assert "for stack in $stacks" in previews and "Pulumi." not in previews


@pytest.mark.parametrize("own", ["", "77"])
def test_the_comment_of_before_is_written_anew_and_no_other_one(tmp_path: Path, own: str) -> None:
    tools, said = tmp_path / ".venv/bin", tmp_path / "gh.txt"
    tools.mkdir(parents=True)
    listed = f'case "$2" in */comments) test -z "{own}" || echo {own};; esac'
    (tools / "gh").write_text(f'#!/bin/sh\necho "$@" >> {said}\n{listed}\n')
    (tools / "python").write_text("#!/bin/sh\necho what $3 changes\n")
    for each in tools.iterdir():
        each.chmod(0o755)
    [step] = [step for step in JOBS["comment"]["steps"] if "gh pr comment" in step.get("run", "")]
    env = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "GITHUB_REPOSITORY": "us/ours",
        "NUMBER": "5",
        "STACKS": "dev team",
        "MARK": step["env"]["MARK"],
    }
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=env, check=True)
    comment = (tmp_path / "comment.md").read_text().splitlines()
    assert comment == [env["MARK"], "what dev changes", "what team changes"]
    _, *written = said.read_text().splitlines()
    again = "api --method PATCH repos/us/ours/issues/comments/77 --field body=@comment.md --silent"
    assert written == [again if own else "pr comment 5 --body-file comment.md"]


COMMENTED = (
    ".github/workflows/pull-request.yaml",
    "development/templates/environment/.github/workflows/pull-request.yaml",
)
"""Workflows that comment on a pull request."""


@pytest.mark.parametrize("file", COMMENTED)
@pytest.mark.parametrize("code", [0, 1])
def test_a_pull_request_whose_preview_violates_a_policy_has_an_error_and_fails(
    file: str, code: int, tmp_path: Path
) -> None:
    """The JSON of the preview has no word about the policy."""
    (programs := tmp_path / "bin").mkdir()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    told = json.dumps({"changeSummary": {"same": 110}})
    for program, does in {
        "bin/pulumi": f"echo '{told}'; exit {code}",
        "bin/gh": "true",
        ".venv/bin/python": f'PYTHONPATH={CHECKOUT} exec {sys.executable} "$@"',
    }.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / program).chmod(0o755)
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml"):
        (tmp_path / name).write_text((CHECKOUT / name).read_text())
    job = yaml.safe_load((CHECKOUT / file).read_text())["jobs"]["comment"]
    env = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "STACKS": "dev",
        "MARK": "<!-- trainyard -->",
        "NUMBER": "1",
        "GITHUB_REPOSITORY": "own/er",
    }
    *before, last = (each["run"] for each in job["steps"] if "name" in each)
    for run in before:
        subprocess.run(["bash", "-e", "-c", run], cwd=tmp_path, env=env, check=True)
    comment = (tmp_path / "comment.md").read_text()
    assert ("- **error**: the preview failed without an error in its JSON" in comment) == bool(code)
    done = subprocess.run(["bash", "-e", "-c", last], cwd=tmp_path, env=env)
    assert done.returncode == code


TOLD = [
    *FILES,
    *sorted((CHECKOUT / "docs").glob("*.md")),
    *sorted((CHECKOUT / "trainyard/cli/new").glob("*.txt")),
    *sorted((CHECKOUT / "development/templates").glob("*/.github/workflows/*.yaml")),
]
"""Texts that say what a workflow needs."""


def _paragraphs(named: str) -> list[str]:
    """Pieces of those texts in which a word is: of a comment, what is between two lines without words."""
    parts = (re.split(r"\n#?\n", file.read_text()) for file in TOLD)
    return [piece for each in parts for piece in each if named in piece]


def test_a_subject_of_github_names_the_ids_first_and_tells_how_to_read_them() -> None:
    """Repositories that were made, renamed or moved since 2026-07-15 have no other subject (github/docs #45221)."""
    told = _paragraphs("repo:<owner>")
    assert len(told) >= 7
    for piece in told:
        first, *_ = re.findall(r"repo:<owner>\S+", piece)
        assert re.match(r"repo:<owner>@<owner-id>/<\w+>@<repository-id>:", first), piece
    texts = [file.read_text() for file in TOLD if "repo:<owner>" in file.read_text()]
    assert [text for text in texts if "repo:<owner>/<" not in text] == []
    assert [text for text in texts if "sub_claim_prefix" not in text] == []


def test_a_token_of_pulumi_is_one_that_only_reads() -> None:
    """The code of a pull request has it before anybody has read that code. Of Pulumi's permission sets Stack Read is
    the one that runs previews and changes no state (pulumi.com/docs/administration/concepts/rbac/permission-sets)."""
    headers = [each.partition("\nname: ")[0] for each in _paragraphs("PULUMI_ACCESS_TOKEN")]
    told = [each for each in headers if "the secret PULUMI_ACCESS_TOKEN" in each]
    assert len(told) == len(headers) == 4
    assert [each for each in told if "Stack Read" not in each or "Never your own" not in each] == []


def test_a_stack_whose_state_is_in_s3_gets_a_key_and_no_passphrase() -> None:
    """Without the option `pulumi stack init` takes a passphrase there (pulumi 3.259), which no workflow has."""
    readmes = (CHECKOUT / "development/templates").glob("*/README.md")
    made = [
        command
        for file in (*TOLD, *readmes)
        for command in re.findall(
            r"pulumi stack init [^`\n]+", file.read_text().partition("s3://my-states")[2]
        )
    ]
    assert len(made) >= 7
    assert [each for each in made if '--secrets-provider "awskms://' not in each] == []
    headers = [each for each in _paragraphs("change-secrets-provider") if "passphrase" in each]
    assert len(headers) == 4


def test_a_pull_request_ends_only_older_checks_of_its_own() -> None:
    """A branch's name is without its owner, and forks share the groups of the repository: two of them can both send
    patch-1 (github.head_ref)."""
    groups = [
        line
        for file in TOLD
        for line in re.findall("concurrency: .*cancel-in-progress: true", file.read_text())
    ]
    assert len(groups) == 4
    assert [each for each in groups if "-${{ github.event.pull_request.number }}" not in each] == []
