"""A new project: few questions, answers judged by the rules of stack files, and no file overwritten."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from packaging.requirements import Requirement

from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from trainyard.catalog.aws.zones import OFFERS, ZONE_LETTERS
from trainyard.cli.new import new
from trainyard.cli.new.address import installed_from
from trainyard.cli.new.project import IMAGE, SAMPLES
from trainyard.cli.new.questions import QUESTIONS, Question
from trainyard.cli.options import OPTIONS
from trainyard.cli.words import WORDS
from trainyard.decide import plan_stack
from trainyard.rules.network import zone_names
from trainyard.settings.environment import TeamConfig
from trainyard.settings.reading.reader import read_file

ANSWERS = {
    "--region": "us-east-1",
    "--zone": "us-east-1a",
    "--public-cidrs": "198.18.0.7/32,198.18.1.0/24",
    "--account": "123456789012",
    "--source": "git+https://example.com/trainyard@v0.2.0",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and nobody at a terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return tmp_path


def typed(answers: dict[str, str]) -> list[str]:
    return [word for pair in answers.items() for word in pair]


def made(kind: str = "environment", /, *words: str, **answers: str) -> int:
    """The exit code of `new` with ANSWERS, some of them replaced; without an empty one."""
    said = ANSWERS | {f"--{key.replace('_', '-')}": text for key, text in answers.items()}
    said = {option: text for option, text in said.items() if text}
    return run_word("new", [kind, *words, *typed(said)])


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def errors(stack: str, folder: Path = Path()) -> list[str]:
    """Errors of `trainyard check`."""
    return [*map(str, plan_stack(read_file(stack, folder), folder).errors)]


class Terminal(io.StringIO):
    """Somebody who types these lines."""

    def isatty(self) -> bool:
        return True


# An environment.


def test_an_environment_has_a_project_that_check_and_plan_accept(folder: Path) -> None:
    assert made() == 0
    assert names(folder) == {
        "Pulumi.yaml",
        "Pulumi.dev.yaml",
        "__main__.py",
        "requirements.txt",
        ".gitignore",
        ".devcontainer/devcontainer.json",
        ".github/workflows/image.yaml",
        ".github/workflows/pull-request.yaml",
        "README.md",
    }
    assert errors("dev") == []
    assert run_word("check", ["dev"]) == run_word("plan", ["dev"]) == 0
    text = "".join((folder / name).read_text() for name in names(folder))
    placeholders = {*re.findall(r"<(\w+)>", text)} - {"stack", "owner", "name"}
    assert placeholders == set(), "<stack> stands in sentences for any stack"


def test_answers_are_in_the_stack_file_with_a_comment_beside_each_decision(folder: Path) -> None:
    assert made(email="gpu@example.com", instance_type="p5.48xlarge", name="prod") == 0
    text = (folder / "Pulumi.prod.yaml").read_text()
    config = yaml.safe_load(text)["config"]
    environment = config["trainyard:environment"]
    assert (config["aws:region"], environment["zone"]) == ("us-east-1", "us-east-1a")
    assert config["aws:allowedAccountIds"] == ["123456789012"]
    assert environment["cluster"]["public_access_cidrs"] == ["198.18.0.7/32", "198.18.1.0/24"]
    assert environment["pools"]["gpu"]["instance_types"] == ["p5.48xlarge"]
    assert environment["told"] == {"emails": ["gpu@example.com"]}
    assert text.count("  # decide: ") >= 4


def test_without_an_email_nobody_is_told(folder: Path) -> None:
    assert made() == 0
    assert "told" not in (folder / "Pulumi.dev.yaml").read_text()


def test_without_a_terminal_every_missing_option_is_named_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_word("new", ["environment", "--zone", "us-east-1a"]) == 2
    assert capsys.readouterr().err == (
        "--region, --public-cidrs, --account and --source are missing, and there is no"
        " terminal to ask\n"
    )
    assert names(folder) == set()


REFUSED = {
    "name": ("Dev_1", "stack [--name]: must be a name of lower-case letters"),
    "region": ("us-est-1", "aws:region [--region]: must be a region of the zone table"),
    "zone": ("us-east-2a", "environment.zone [--zone]: must be a zone of aws:region (us-east-1)"),
    "instance_type": ("p9.huge", "environment.pools.gpu.instance_types [--instance-type]: must"),
    "public_cidrs": (
        "198.18.0.7/32, 10.0.0.0/8",
        "environment.cluster.public_access_cidrs [--public-cidrs]: must list public addresses",
    ),
    "account": ("1234", "aws:allowedAccountIds.0 [--account]: must be an account ID of twelve"),
    "email": ("me", "environment.told.emails[0] [--email]: must be an e-mail address; got me"),
    "source": ("trainyard", "--source: must be an address that pip installs from; got trainyard"),
}


def test_every_question_about_an_environment_has_an_answer_that_is_refused() -> None:
    assert [*REFUSED] == [question.field for question in QUESTIONS["environment"]]


@pytest.mark.parametrize("field", REFUSED)
def test_an_option_is_judged_by_the_rules_of_stack_files_and_nothing_is_written(
    field: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, says = REFUSED[field]
    assert made(**{field: answer}) == 1
    out, err = capsys.readouterr()
    assert says in out and ". Fix: " in out and err == "nothing is written\n"
    assert names(folder) == set()


@pytest.mark.parametrize("field", REFUSED)
def test_at_a_terminal_a_refused_answer_is_asked_again_at_once(
    field: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong, says = REFUSED[field]
    right = {q.field: ANSWERS.get(q.option, "") for q in QUESTIONS["environment"]}
    lines = [
        line for key, text in right.items() for line in ([wrong, text] if key == field else [text])
    ]
    monkeypatch.setattr("sys.stdin", Terminal("".join(f"{line}\n" for line in lines)))
    assert run_word("new", ["environment"]) == 0
    err = capsys.readouterr().err
    asked = [question.asks for question in QUESTIONS["environment"]]
    assert [err.count(each) for each in asked] == [1 + (key == field) for key in right]
    assert says in err and errors("dev") == []


def test_what_an_option_says_is_not_asked_and_a_required_answer_is_until_it_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("\n\n\n\n198.18.0.7/32\n\n"))
    given = {key: text for key, text in ANSWERS.items() if key != "--public-cidrs"}
    assert run_word("new", ["environment", *typed(given)]) == 0
    err = capsys.readouterr().err
    ranges = next(q for q in QUESTIONS["environment"] if q.field == "public_cidrs")
    assert err.count(ranges.asks) == 3 and "AWS region" not in err and "[g6e.48xlarge]: " in err


def test_somebody_who_stops_answering_has_written_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("dev\nus-east-1\n"))
    assert run_word("new", ["environment"]) == 1
    assert "nothing is written: there is no answer" in capsys.readouterr().err
    assert names(folder) == set()


@pytest.mark.parametrize("region", ZONE_LETTERS)
def test_every_region_and_zone_is_accepted_or_refused_because_it_does_not_sell_the_type(
    region: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sold = region in OFFERS["g6e.48xlarge"]
    for zone in zone_names(region):
        assert made("environment", zone, region=region, zone=zone) == (0 if sold else 1)
        if sold:
            assert errors("dev", folder / zone) == []
        else:
            [line] = capsys.readouterr().out.splitlines()
            assert (
                "environment.pools.gpu.instance_types [--instance-type]: must list types that"
                in line
            )
            assert not (folder / zone).exists()


def test_an_answer_is_text_and_never_yaml(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for answer in ("us-east-1a\n    tags: {a: b}", "us-east-1a # x", "{a: b}", "1e3", "<region>"):
        assert made(zone=answer) == 1
        assert "environment.zone [--zone]: must " in capsys.readouterr().out
    assert names(folder) == set()


@pytest.mark.parametrize(
    "source",
    [
        "git+https://a/b ; python_version<'3'",
        "https://a/b\n-e .",
        "-r x",
        "trainyard",
        "git+file:///a/b",
        "https://a.example/t.whl#sha256=f00",
    ],
)
def test_a_source_that_pip_does_not_take_is_refused(source: str, folder: Path) -> None:
    assert made(source=source) == 1 and names(folder) == set()


@pytest.mark.parametrize(
    "source",
    [
        "git+ssh://git@a.example/b@v1",
        "https://a.example/t-1-py3-none-any.whl",
        f"https://a.example/t-1-py3-none-any.whl#sha256={'0' * 64}",
        "file:///wheels/t-1-py3-none-any.whl",
    ],
)
def test_a_source_is_a_requirement_that_pip_reads(source: str, folder: Path) -> None:
    assert made(source=source) == 0
    *_, line = (folder / "requirements.txt").read_text().splitlines()
    assert line == f"trainyard[pulumi] @ {source}"
    assert (Requirement(line).url, Requirement(line).extras) == (source, {"pulumi"})


# Files.


def test_no_file_is_overwritten_and_each_that_is_there_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("README.md", "Pulumi.dev.yaml"):
        (folder / name).write_text("mine")
    (folder / ".gitignore").symlink_to("nowhere")
    assert made() == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0].split()[-1] for line in lines] == [
        "Pulumi.dev.yaml",
        "README.md",
        ".gitignore",
    ]
    assert all("must not exist: no file is overwritten" in line for line in lines)
    assert names(folder) == {"README.md", "Pulumi.dev.yaml"}
    assert (folder / "README.md").read_text() == "mine"


def test_a_file_that_cannot_be_written_leaves_no_other_file_and_no_folder(folder: Path) -> None:
    (folder / "taken").write_text("mine")
    wanted = {"a": "1", "b/c/d": "2", "taken": "3"}
    with pytest.raises(FileExistsError):
        new.write(folder, wanted)
    assert [path.name for path in folder.iterdir()] == ["taken"]


def test_a_folder_that_cannot_be_made_is_a_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "file").touch()
    assert made("environment", "file/below") == 1
    assert capsys.readouterr().err == "file/below: Not a directory; nothing is written\n"


def test_a_folder_is_made_and_a_file_is_none(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made("environment", "a/b") == 0 and errors("dev", folder / "a/b") == []
    assert "next: cd a/b && trainyard check dev" in capsys.readouterr().err
    (folder / "c").touch()
    assert made("environment", "c") == 1
    assert "c: must be a folder; got a file" in capsys.readouterr().out


def test_a_second_environment_joins_the_project(folder: Path) -> None:
    assert made() == 0
    before = {name: (folder / name).read_text() for name in names(folder)}
    assert made(name="prod", region="us-west-2", zone="us-west-2b", source="") == 0
    assert names(folder) == {*before, "Pulumi.prod.yaml"} and errors("prod") == []
    assert before == {name: (folder / name).read_text() for name in before}


def test_an_option_that_nothing_would_read_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made(name="prod") == 1
    assert "--source: must not be set beside Pulumi.yaml" in capsys.readouterr().out
    assert made(name="dev") == 1
    shown = capsys.readouterr().out
    assert "Pulumi.dev.yaml: must not exist: no file is overwritten" in shown
    assert "--source" not in shown, "the project is there, whatever the option says"
    file = project / "Pulumi.dev.yaml"
    entry = "    teams: {vision: {deployer: 'arn:aws:iam::123456789012:role/vision'}}\n"
    file.write_text(file.read_text() + entry)
    assert team("--max-gpus", "8") == 1
    assert "--max-gpus: must not be set with a team that the" in capsys.readouterr().out
    assert not (project / "Pulumi.prod.yaml").exists() and not (project / "team-vision").exists()


def test_a_stack_file_has_the_name_of_the_project_that_it_joins(folder: Path) -> None:
    (folder / "Pulumi.yaml").write_text("name: ours\nruntime: python\n")
    assert run_word("new", ["environment", *typed(ANSWERS)[:-2]]) == 0
    assert "  ours:environment:\n" in (folder / "Pulumi.dev.yaml").read_text()
    assert errors("dev") == []


def test_the_project_file_of_a_new_project_means_what_that_of_this_checkout_means(
    folder: Path,
) -> None:
    assert made() == 0
    ours = yaml.safe_load((CHECKOUT / "Pulumi.yaml").read_text())
    theirs = yaml.safe_load((folder / "Pulumi.yaml").read_text())
    assert {**ours, "description": ""} == {**theirs, "description": ""}


def test_the_devcontainer_has_the_pulumi_of_the_workflow_and_a_valid_script(folder: Path) -> None:
    assert made() == 0
    container = json.loads((folder / ".devcontainer/devcontainer.json").read_text())
    workflow = (folder / ".github/workflows/pull-request.yaml").read_text()
    [version] = re.findall(r"pulumi-version: (.*)}", workflow)
    script = container["postCreateCommand"]
    assert f"--version {version} " in script and "-r requirements.txt" in script
    done = subprocess.run(["bash", "-n", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "jobs", "actions"),
    [("pull-request", ["check", "comment"], 6), ("image", ["image"], 3)],
)
def test_the_workflows_have_the_actions_of_this_checkout_and_valid_scripts(
    folder: Path, name: str, jobs: list[str], actions: int
) -> None:
    assert made() == 0
    text = (folder / f".github/workflows/{name}.yaml").read_text()
    ours = (CHECKOUT / ".github/workflows/pull-request.yaml").read_text()
    used = re.findall(r"uses: (.*)", text)
    assert len(used) == actions and {*used} <= {*re.findall(r"uses: (.*)", ours)}
    version = r"pulumi-version: (.*)}"
    assert {*re.findall(version, text)} <= {*re.findall(version, ours)}
    found = yaml.safe_load(text)["jobs"]
    assert [*found] == jobs
    for step in (step for job in found.values() for step in job["steps"]):
        if "run" in step:
            done = subprocess.run(["bash", "-n", "-c", step["run"]], capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, "")


def test_the_readme_of_a_project_is_short_and_its_words_can_be_typed(folder: Path) -> None:
    assert made() == 0
    lines = (folder / "README.md").read_text().splitlines()
    assert len(lines) <= 10
    for word in re.findall(r"`trainyard (\w+)", "\n".join(lines)):
        assert word in WORDS


def test_the_readme_of_a_project_logs_in_before_it_makes_a_stack(folder: Path) -> None:
    assert made() == 0
    text = (folder / "README.md").read_text()
    places = [
        text.index(word) for word in ("`aws sso login`", "`pulumi login", "`pulumi stack init")
    ]
    assert places == sorted(places)


def test_the_image_is_that_of_the_first_job_of_this_checkout() -> None:
    assert f"image: {IMAGE}\n" in (CHECKOUT / "Pulumi.dev.yaml").read_text()


# A team.


@pytest.fixture
def project(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A project with an environment."""
    assert made() == 0
    capsys.readouterr()
    return folder


def team(*words: str) -> int:
    return run_word("new", ["team", "--name", "vision", *words])


def of_team(folder: Path) -> TeamConfig:
    config = read_file("team-vision", folder).config
    assert config and config.team
    return config.team


def test_a_team_joins_the_project_of_its_environment(project: Path) -> None:
    before = names(project)
    assert team() == 0
    assert names(project) - before == {
        "Pulumi.team-vision.yaml",
        "team-vision/train.py",
        "team-vision/checkpoints.py",
    }
    assert errors("team-vision") == []
    assert run_word("plan", ["team-vision"]) == 0
    wanted = of_team(project)
    assert (wanted.environment, wanted.namespace, wanted.max_gpus) == ("dev", "team-vision", 16)
    config = yaml.safe_load((project / "Pulumi.team-vision.yaml").read_text())["config"]
    assert config["aws:region"] == "us-east-1"
    assert config["aws:allowedAccountIds"] == ["123456789012"]


def test_the_scripts_of_a_team_are_the_samples_that_are_tested(project: Path) -> None:
    assert team() == 0
    for sample in SAMPLES:
        written = project / "team-vision" / Path(sample).name
        assert written.read_text() == (CHECKOUT / sample).read_text()


def test_a_second_team_joins_the_same_environment(project: Path) -> None:
    assert team() == 0
    assert run_word("new", ["team", "--name", "nlp"]) == 0
    assert errors("team-vision") == errors("team-nlp") == []


def test_a_team_that_the_environment_lists_has_its_entry(project: Path) -> None:
    file = project / "Pulumi.dev.yaml"
    entry = "    teams: {vision: {deployer: 'arn:aws:iam::123456789012:role/vision'}}\n"
    file.write_text(file.read_text() + entry)
    assert team() == 0 and errors("team-vision") == []
    wanted = of_team(project)
    assert (wanted.name, wanted.namespace, wanted.max_gpus) == ("vision", None, None)


@pytest.mark.parametrize(
    ("prefix", "image"),
    [
        ("registry.example.com/vision/", "registry.example.com/vision/first:1"),
        ("public.ecr.aws/deep-learning-containers/", IMAGE),
    ],
)
def test_a_team_that_may_run_its_own_images_only_has_one_of_them(
    project: Path, prefix: str, image: str
) -> None:
    """The tool chose an image, refused it, and had no option to name another."""
    file = project / "Pulumi.dev.yaml"
    role = "arn:aws:iam::123456789012:role/vision"
    entry = f"    teams: {{vision: {{deployer: '{role}', image_prefixes: ['{prefix}']}}}}\n"
    file.write_text(file.read_text() + entry)
    assert team() == 0 and errors("team-vision") == []
    text = (project / "Pulumi.team-vision.yaml").read_text()
    config = yaml.safe_load(text)["config"]
    assert config["trainyard:team"]["jobs"]["first"]["image"] == image
    assert ("push an image there" in text) == (image != IMAGE) and text.count(" image: ") == 1


def test_a_job_fits_an_environment_without_storage_and_with_one_node(project: Path) -> None:
    file = project / "Pulumi.dev.yaml"
    text = file.read_text()
    text = re.sub(r"    storage:\n.*?(?=    trainer:)", "", text, flags=re.DOTALL)
    file.write_text(text.replace("max_nodes: 4", "max_nodes: 1"))
    assert team() == 0 and errors("team-vision") == []
    text = (project / "Pulumi.team-vision.yaml").read_text()
    assert "allow_no_checkpoint: true" in text and "nodes: 1 " in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["--environment", "prod"],
            "team.environment [--environment]: must be a stack with a stack",
        ),
        (["--max-gpus", "many"], "team.max_gpus [--max-gpus]: must"),
        (["--max-gpus", "0"], "team.max_gpus [--max-gpus]: must"),
    ],
)
def test_an_answer_about_a_team_is_judged_too(
    words: list[str], says: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert team(*words) == 1 and says in capsys.readouterr().out
    assert not (project / "team-vision").exists()


def test_a_team_with_a_name_that_is_none_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_word("new", ["team", "--name", "../vision"]) == 1
    assert "stack [--name]: must be a name of lower-case" in capsys.readouterr().out


def test_a_team_in_a_folder_of_its_own_needs_the_stack_file_of_its_environment(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = project / "vision"
    words = ["new", "team", str(own), "--name", "vision", "--source", ANSWERS["--source"]]
    assert run_word(words[0], words[1:]) == 1
    assert "team.environment [--environment]: must be a stack with a stack file" in (
        capsys.readouterr().out
    )
    own.mkdir()
    (own / "Pulumi.prod.yaml").write_text((project / "Pulumi.dev.yaml").read_text())
    assert run_word(words[0], words[1:]) == 0
    assert errors("team-vision", own) == []
    assert of_team(own).environment == "prod", "the only one there"
    assert {"Pulumi.yaml", "README.md", "requirements.txt", "team-vision/train.py"} <= names(own)


@pytest.mark.parametrize("listed", [False, True])
def test_a_team_in_a_folder_of_its_own_begins_with_the_contract_alone(
    listed: bool, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if listed:
        file = project / "Pulumi.dev.yaml"
        entry = "    teams: {vision: {deployer: 'arn:aws:iam::123456789012:role/vision'}}\n"
        file.write_text(file.read_text() + entry)
    assert run_word("contract", ["--stack", "dev", *(["--team", "vision"] if listed else [])]) == 0
    (own := project.parent / f"vision-{listed}").mkdir()
    (own / "contract.yaml").write_text(capsys.readouterr().out)
    words = ["team", str(own), "--name", "vision", "--source", ANSWERS["--source"]]
    assert run_word("new", words) == 0, capsys.readouterr().out
    assert errors("team-vision", own) == []
    wanted = of_team(own)
    assert (wanted.environment, wanted.contract) == ("dev", "contract.yaml")
    assert (wanted.name, wanted.namespace) == (
        ("vision", None) if listed else (None, "team-vision")
    )
    text = (own / "Pulumi.team-vision.yaml").read_text()
    assert "beside this one" not in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--contract", "none.yaml"], "team.contract [--contract]: must be a file in the folder"),
        (["--contract", "../x.yaml"], "team.contract [--contract]: must be a file in the folder"),
    ],
)
def test_a_contract_that_is_none_is_refused(
    words: list[str], says: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert team(*words) == 1 and says in capsys.readouterr().out


def test_a_contract_without_text_is_the_only_thing_to_blame(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "contract.yaml").write_text("")
    assert team("--contract", "contract.yaml") == 1
    [error] = [line for line in capsys.readouterr().out.splitlines() if "error" in line]
    assert "contract.yaml: must be one YAML document" in error


def test_an_option_of_another_kind_is_wrong_usage(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert team("--region", "us-east-1", "--account", "1") == 2
    assert capsys.readouterr().err == "new team takes no --region, --account\n"


# The page.


def test_the_commands_of_the_page_work_in_their_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (CHECKOUT / "docs/projects.md").read_text().partition("\n## From a Pulumi")[0]
    answers = {q.field: ANSWERS.get(q.option, "") for q in QUESTIONS["environment"]}
    typed_first = "".join(f"{each}\n" for each in answers.values())
    monkeypatch.setattr("sys.stdin", Terminal(typed_first + "\n" * 10))
    done = []
    for line in "".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL)).splitlines():
        program, *words = shlex.split(line.replace("<", "").replace(">", ""))
        if program == "cd":
            monkeypatch.chdir(words[0])
        elif program == "trainyard" and "--live" not in words and words not in done:
            there = words if "--source" not in words else [*words[:2], "elsewhere", *words[3:]]
            assert run_word(there[0], there[1:]) == 0, line
            done.append(words)
    assert [words[0] for words in done] == ["new", "check", "plan", "new", "new", "check"]


# The questions.


def all_questions() -> list[Question]:
    return [question for questions in QUESTIONS.values() for question in questions]


def test_every_question_is_an_option_of_the_word() -> None:
    assert {question.option for question in all_questions()} == {*WORDS["new"].options}
    for question in all_questions():
        if question.default and question.field != "name":
            assert question.default in OPTIONS[question.option]["help"]


@pytest.mark.parametrize(
    ("about", "address"),
    [
        (
            {"url": "https://a.example/t", "vcs_info": {"vcs": "git", "commit_id": "f00"}},
            "git+https://a.example/t@f00",
        ),
        ({"url": "https://a.example/t.whl", "archive_info": {}}, "https://a.example/t.whl"),
        ({"url": "file:///home/me/t.whl", "archive_info": {}}, ""),
        (None, ""),
    ],
)
def test_where_the_tool_was_installed_from_answers_where_to_install_it_from(
    about: object, address: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps(about) if about else None
    told = SimpleNamespace(read_text=lambda _: text)
    monkeypatch.setattr(metadata, "distribution", lambda _: told)
    assert installed_from() == address
    given = typed({key: text for key, text in ANSWERS.items() if key != "--source"})
    assert run_word("new", ["environment", *given]) == (0 if address else 2)
    if address:
        assert f"[pulumi] @ {address}\n" in (folder / "requirements.txt").read_text()
