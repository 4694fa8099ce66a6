"""What the documents promise to type is there, and is run by a test."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from rehearsal import paths
from tests.support.stackfile import at, errors, reading
from tests.support.tool import run_word
from trainyard import decide
from trainyard.cli import words as tool
from trainyard.cli.options import OPTIONS
from trainyard.decide import plan_stack
from trainyard.settings.reading.reader import read

CHECKOUT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *sorted(CHECKOUT.glob("*.md")),
    CHECKOUT / ".github/SECURITY.md",
    *sorted(CHECKOUT.glob("docs/**/*.md")),
    *(CHECKOUT / folder / "README.md" for folder in ("rehearsal", "workloads", "benchmarks")),
]
README = CHECKOUT / "README.md"
TARGETS = set(re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
PROGRAMS = (
    *("make", "trainyard", "python", "python3", "pulumi", "aws", "kubectl", "docker", "git", "gh"),
    *("eval", "curl", "cd", ".", "export"),
)
"""What a command of the documents can begin with, beside files of the checkout and of .venv."""


def _commands() -> Iterator[str]:
    """Every command of the documents: lines of `sh` blocks and code in sentences."""
    for file in DOCUMENTS:
        if file.name == "CHANGELOG.md":  # it names commands that other releases had
            continue
        text = file.read_text()
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
            for line in block.splitlines():
                yield from re.split(r" && ", re.sub(r"\s+#.*", "", line))
        without_blocks = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for code in re.findall(r"`([^`\n]+)`", without_blocks):
            if code.split()[0] in PROGRAMS:
                yield from re.split(r" && ", code)


COMMANDS = sorted({command.strip() for command in _commands()})
MAKE = [command.split()[1:] for command in COMMANDS if command.split()[0] == "make"]
WORDS = sorted({word for words in MAKE for word in words[:1]} - {".venv/bin/trainyard"})
TOOL = [command for command in COMMANDS if re.match(r"(\.venv/bin/)?trainyard ", command)]
MODULES = [command for command in COMMANDS if re.match(r"python3? -m (?!venv)", command)]
PULUMI = [command for command in COMMANDS if re.match(r"(\w+=\w+ )*pulumi ", command)]


def test_the_commands_of_the_documents_are_found() -> None:
    """The tests below have something to test."""
    assert {"up", "down", "test", "schema"} <= set(WORDS) and len(TOOL) > 60
    assert len(MODULES) >= 4 and len(PULUMI) >= 8 and len(DOCUMENTS) >= 18


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_begins_with_a_program_that_is_known(command: str) -> None:
    first = next(word for word in command.split() if not re.match(r"[A-Z0-9_]+=", word))
    assert first in (*PROGRAMS, "$EDITOR") or first.startswith(".venv/bin/")


def test_who_buys_capacity_names_its_region_its_zone_and_the_tag_of_its_stack() -> None:
    """A block of another zone is lost: nobody can cancel or move it (EC2 API, CancelCapacityReservation)."""
    bought = [each for each in COMMANDS if re.search("capacity-(block|reservation)", each)]
    made = [each for each in bought if re.match("aws ec2 (purchase|create)-", each)]
    offers = [each for each in bought if "describe-capacity-block-offerings" in each]
    assert made and offers
    assert [each for each in (*made, *offers) if "--region ap-northeast-2" not in each] == []
    assert [each for each in made if "Key=trainyard:stack" not in each] == []
    assert [each for each in offers if "AvailabilityZone=='ap-northeast-2a'" not in each] == []


def test_a_login_to_a_bucket_names_its_region() -> None:
    """Pulumi asks for the region of a bucket in the address alone, the profile or AWS_REGION, and ends with
    MissingRegion or a redirect where they name none or another (pulumi/pulumi#13899)."""
    texts = [file.read_text() for file in (*DOCUMENTS, *CHECKOUT.glob("trainyard/cli/new/*.txt"))]
    logins = [each for text in texts for each in re.findall(r"pulumi login '?s3://[^\s`…]+", text)]
    assert len(logins) >= 4 and [each for each in logins if "?region=" not in each] == []


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_a_long_session_is_asked_of_a_role_that_allows_it(file: Path) -> None:
    """A role allows 3,600 seconds until somebody says more, and STS refuses what is above (AssumeRoleWithWebIdentity,
    DurationSeconds)."""
    text = file.read_text()
    asked = [3600 * int(hours) for hours in re.findall(r"\bduration: (\d+)h", text)]
    asked += [int(seconds) for seconds in re.findall(r"role-duration-seconds: (\d+)", text)]
    allowed = re.findall(r"aws iam update-role .*--max-session-duration (\d+)", text)
    assert max(asked, default=0) <= max(map(int, allowed), default=3600) <= 12 * 3600


def test_the_programs_of_a_first_day_have_their_releases() -> None:
    text = " ".join((CHECKOUT / "docs/getting-started.md").read_text().split())
    [needed] = re.findall(r"On your machine: (.*?)\. For a", text)
    for program in ("Python", "Pulumi", "the AWS CLI", "helm"):
        assert re.search(rf"{program} \d+(\.\d+)?\b", needed), program
    assert "kubectl of a minor release" in needed


def test_no_text_says_to_forget_a_stack_and_delete_its_file() -> None:
    """Without --preserve-config, `pulumi stack rm` deletes Pulumi.<stack>.yaml (pulumi 3.259,
    pkg/cmd/pulumi/stack/stack_rm.go)."""
    files = [
        each
        for kind in ("py", "txt", "md")
        for folder in ("docs", "trainyard")
        for each in CHECKOUT.glob(f"{folder}/**/*.{kind}")
    ]
    said = [
        (file.name, found)
        for file in {*files, *DOCUMENTS} - {CHECKOUT / "CHANGELOG.md"}
        for found in re.findall(
            r"pulumi stack rm\b[^`#\n]*", re.sub(r'"\s*f?"', "", file.read_text())
        )
    ]
    assert len(said) >= 4
    assert [each for each in said if "--preserve-config" not in each[1]] == []


@pytest.mark.parametrize("word", WORDS)
def test_every_make_word_of_the_documents_is_a_target(word: str):
    assert word in TARGETS


@pytest.mark.parametrize("command", TOOL)
def test_every_word_of_the_tool_in_the_documents_can_be_typed(command: str) -> None:
    _, word, *words = shlex.split(command.partition(" > ")[0].rstrip(":"))
    if word in ("<word>", "--help", "--version"):
        return
    assert word in tool.WORDS
    said = {each for each in words if each.startswith("--")}
    assert said <= {*tool.WORDS[word].takes, "--help"}
    given = [each for each in words if not each.startswith("--")]
    valued = [each for each in said if OPTIONS.get(each, {}).get("action") != "store_true"]
    arguments = 1 + bool(tool.WORDS[word].second)
    assert len(given) <= len(valued) + arguments or word == "migrate"


@pytest.mark.parametrize("word", sorted(TARGETS))
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
    assert {words[0] for words in MAKE if words} <= {word for word, _ in rows} | {
        ".venv/bin/trainyard"
    }
    columns = {
        line.index(text) for line in done.stdout.splitlines() for _, text in rows if text in line
    }
    assert len(columns) == 1, "the sentences are aligned"
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"], "nothing is installed"


ATTACKS = {
    "shell": "x'; touch pwned; '",
    "substitution": "$(touch pwned)`touch pwned`",
    "make": "$(shell touch pwned)",
    "line": "x\ntouch pwned",
}


def test_every_setting_of_make_is_taken_as_text() -> None:
    """A setting that is missing in the list would be expanded by make."""
    text = (CHECKOUT / "Makefile").read_text()
    used = {*re.findall(r"\$\(([A-Z]+)\)", text)}
    own = {*re.findall(r"^([A-Z]+) *[:?]?=", text, re.MULTILINE)} - {"STACK"}
    [taken] = re.findall(r"foreach name,([A-Z ]+),", text)
    assert used - own == {*taken.split()}


@pytest.mark.parametrize("value", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize(
    "words",
    ["plan STACK", "check STACK", "logs JOB", "down STACK", "env STACK"],
)
@pytest.mark.parametrize("by", ["command", "environment"])
def test_what_a_setting_of_make_holds_is_never_run(
    words: str, value: str, by: str, tmp_path: Path
) -> None:
    """The program gets the text, or nothing; neither make nor a shell takes it as theirs."""
    shutil.copy(CHECKOUT / "Makefile", tmp_path)
    for name in (
        "requirements.txt",
        "requirements/develop.txt",
        "requirements/policy.txt",
        ".venv/.product",
        ".venv/.develop",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for name in ("python", "trainyard"):
        program = tmp_path / ".venv/bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
        program.chmod(0o755)
    *given, name = words.split()
    setting, environment = f"{name}={value}", {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["make", *given, *([setting] if by == "command" else [])],
        cwd=tmp_path,
        env=environment | ({name: value} if by == "environment" else {}),
        capture_output=True,
        text=True,
    )
    assert not (tmp_path / "pwned").exists(), done.stdout
    if "\n" not in value:
        assert f"|{value}|" in done.stdout, done.stderr


def _make(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """make in a folder with the Makefile alone, where nothing can be installed or run."""
    if cwd != CHECKOUT:
        shutil.copy(CHECKOUT / "Makefile", cwd)
    return subprocess.run(
        ["make", *words],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "PYTHON": "false"} | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("word", sorted(TARGETS))
@pytest.mark.parametrize("value", ["1", "0", "", "$(shell touch pwned)"])
def test_a_setting_that_make_does_not_read_is_refused(
    word: str, value: str, tmp_path: Path
) -> None:
    """Somebody who writes LIVE=1 means an account, and would get the rehearsal."""
    done = _make(word, f"LIVE={value}", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), "it neither installs nor starts anything"
    assert "make has no setting LIVE. Fix: leave it out" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"]


def test_words_of_make_that_read_a_cluster_mean_the_rehearsal() -> None:
    for word in ("status", "logs", "watch"):
        done = _make("--dry-run", "--always-make", word, "JOB=a b", cwd=CHECKOUT)
        last = done.stdout.splitlines()[-1]
        assert last.startswith(f".venv/bin/trainyard {word} --rehearsal --stack 'dev'"), last
        assert last.endswith("--job 'a b'") == (word == "logs")


@pytest.mark.parametrize("setting", sorted({w for words in MAKE for w in words[1:]}))
def test_every_setting_of_a_make_word_is_read_by_the_makefile(setting: str):
    assert f"$({setting.partition('=')[0]})" in (CHECKOUT / "Makefile").read_text()


@pytest.mark.parametrize("command", MODULES)
def test_every_module_of_the_documents_takes_its_options(command: str):
    _, _, module, *words = command.partition(" > ")[0].split()
    package = CHECKOUT / module.replace(".", "/")
    name = f"{module}.__main__" if package.is_dir() else module
    with contextlib.redirect_stdout(io.StringIO()) as printed, pytest.raises(SystemExit) as ended:
        importlib.import_module(name).main([*_subword(module, words), "--help"])
    assert ended.value.code == 0
    options = [word for word in words if word.startswith("--")]
    assert [option for option in options if option not in printed.getvalue()] == []


def _subword(module: str, words: list[str]) -> list[str]:
    """The word whose help lists the options; a module of its own has none."""
    return words[:1] if module in ("rehearsal", "development") else []


@pytest.mark.parametrize("command", PULUMI)
def test_every_pulumi_command_of_the_documents_takes_its_options(command: str):
    program = paths.BIN / "pulumi"
    if not program.exists():
        pytest.skip("`make up` or `python -m rehearsal build` builds pulumi")
    words = command.partition("pulumi ")[2].split()
    verbs = [w for w in words[:2] if re.fullmatch(r"[a-z]+", w)]
    done = subprocess.run([program, *verbs, "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    usage = done.stdout.partition("Usage:")[2].partition("Flags:")[0]  # aliases, too
    assert verbs[-1] in re.findall(r"[a-z]+", usage)
    options = [word for word in words if word.startswith("-")]
    assert [option for option in options if option not in done.stdout] == []


def test_an_older_state_goes_back_by_the_commands_of_the_document(tmp_path: Path) -> None:
    """The back end is a folder here, and a bucket there: both hold a checkpoint, which cannot be imported."""
    program = paths.BIN / "pulumi"
    if not program.exists():
        pytest.skip("`make up` or `python -m rehearsal build` builds pulumi")
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    environment = {
        **os.environ,
        "PULUMI_HOME": str(tmp_path),
        "PULUMI_BACKEND_URL": f"file://{tmp_path}",
        "PULUMI_CONFIG_PASSPHRASE": "x",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }

    def pulumi(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [program, "stack", *words, "--non-interactive"]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, input=text, capture_output=True, text=True
        )

    assert pulumi("init", "dev").returncode == 0
    exported = json.loads(pulumi("export", "--stack", "dev").stdout)
    stack = "pulumi:pulumi:Stack"
    urn = f"urn:pulumi:dev::trainyard::{stack}::trainyard-dev"
    exported["deployment"]["resources"] = [{"urn": urn, "custom": False, "type": stack}]
    imported = pulumi("import", "--stack", "dev", text=json.dumps(exported))
    assert imported.returncode == 0, imported.stderr
    document = (CHECKOUT / "docs/drift.md").read_text()
    [get, put] = re.findall(r"^aws s3.*dev\.json$", document, re.MULTILINE)
    [key] = re.findall(r"--key (\S+)", get)
    source, target = put.split()[-2:]
    assert source == get.split()[-1] == "dev.json" and target == f"s3://<bucket>/{key}"
    shutil.move(tmp_path / key, tmp_path / source)
    assert "no stack named" in pulumi("export", "--stack", "dev").stderr
    shutil.copy(tmp_path / source, tmp_path / key)
    held = json.loads(pulumi("export", "--stack", "dev").stdout)["deployment"]["resources"]
    assert [each["urn"] for each in held] == [urn]
    refused = pulumi("import", "--stack", "dev", "--file", source)
    assert refused.returncode and "could not deserialize deployment" in refused.stderr


LINKS = [
    (file, link)
    for file in DOCUMENTS
    for link in re.findall(r"\]\(([^)\s]+)\)", file.read_text())
    if "://" not in link
]


def _anchors(file: Path) -> set[str]:
    """The names that GitHub gives the headings of a page."""
    text = re.sub(r"```.*?```", "", file.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    ("file", "link"), LINKS, ids=lambda part: part.name if isinstance(part, Path) else part
)
def test_every_link_leads_somewhere(file: Path, link: str):
    path, _, anchor = link.partition("#")
    target = (file.parent / path).resolve() if path else file
    assert target.exists()
    if anchor:
        assert anchor in _anchors(target)


def test_the_index_has_every_page():
    index = CHECKOUT / "docs" / "index.md"
    linked = {(file.parent / link).resolve() for file, link in LINKS if file == index}
    assert [file for file in DOCUMENTS if file not in linked | {index}] == []


def test_the_first_command_of_a_pull_request_works_as_written():
    done = subprocess.run(
        ["make", "check", "STACK=dev"], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "dev: no errors" in done.stdout


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
    # later there are more warnings: Kubernetes 1.35 leaves standard support
    monkeypatch.setattr(decide, "datetime", Mock(now=lambda _: datetime(2026, 11, 30, tzinfo=UTC)))
    assert run_word("check", ["dev"]) == 1
    [sample] = re.findall(r"```\n\$ trainyard check\n(.*?)```", README.read_text(), re.DOTALL)
    printed = capsys.readouterr().out.splitlines()
    shown = [line for line in printed if not line.startswith("  warning")]
    assert len(shown) == 3 and sample.splitlines() == shown


def test_faults_of_the_rehearsal_are_named_as_the_command_takes_them():
    from rehearsal.commands.faults import FAULTS

    text = (CHECKOUT / "rehearsal/README.md").read_text()
    assert {error for error in FAULTS if error in text} >= {
        "throttle",
        "lose-answer",
        "no-capacity",
        "vanish",
        "clear",
    }


def test_the_stack_file_of_the_readme_is_accepted():
    [whole] = _yaml("README.md")
    [account] = _yaml("docs/getting-started.md")
    values = yaml.safe_load(whole)["config"]
    assert plan_stack(read(values, stack="readme", project="trainyard")).errors == ()
    values |= yaml.safe_load(account)["config"]
    assert plan_stack(read(values, stack="readme", project="trainyard")).errors == ()


def test_the_lustre_store_that_is_sized_for_a_model_is_accepted():
    [part] = [part for part in _yaml("docs/storage.md") if "s3://my-sets/images/" in part]
    [(name, store)] = yaml.safe_load(part)["storage"].items()
    pool = {"instance_types": ["p5.48xlarge"], "max_nodes": 16}
    assert errors(at("pools.h100", pool), at(f"storage.{name}", store)) == []


def _yaml(document: str) -> list[str]:
    """The yaml blocks of a document."""
    return re.findall(r"```yaml\n(.*?)```", (CHECKOUT / document).read_text(), re.DOTALL)


def test_a_role_of_an_sso_group_is_accepted_as_the_documents_write_it() -> None:
    [part] = _yaml("docs/before-you-adopt.md")
    teams = yaml.safe_load(part)["teams"]
    assert ":role/aws-reserved/sso." in teams["vision"]["members"][0]
    assert errors(at("teams", teams)) == []


@pytest.mark.parametrize(
    "part",
    _yaml("docs/capacity.md"),
    ids=lambda part: part.split()[1],
)
def test_every_pool_and_price_of_the_documents_is_accepted(part: str):
    said = yaml.safe_load(part)
    edits = [at(f"pools.{name}", pool) for name, pool in said.get("pools", {}).items()]
    edits += [at("prices", said["prices"])] if "prices" in said else []
    written = datetime(2026, 11, 25, tzinfo=UTC)
    assert edits and plan_stack(reading(*edits), now=written).errors == ()


@pytest.mark.parametrize(
    "part",
    [*_yaml("docs/jobs.md"), *_yaml("docs/data.md")],
    ids=lambda part: part.split()[1],
)
def test_every_job_of_the_documents_is_accepted(part: str):
    said = yaml.safe_load(part)
    edits = [at(f"jobs.{name}", job) for name, job in said.get("jobs", {}).items()]
    edits += [at(f"pools.{name}", pool) for name, pool in said.get("pools", {}).items()]
    edits += [
        at(f"trainer.own_runtimes.{name}", own)
        for name, own in said.get("trainer", {}).get("own_runtimes", {}).items()
    ]
    assert edits and errors(at("training_operator", {"version": "1.8.1"}), *edits) == []
