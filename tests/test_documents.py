"""CONTRIBUTING.md answers the questions of people who are new, with files that exist."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.recording import CHECKOUT
from tests.test_readme import DOCUMENTS
from tests.test_structure import FLOORS, PRODUCT, REHEARSAL, SHARED
from trainyard.problems import InputError, InputWarning

TEXT = (CHECKOUT / "CONTRIBUTING.md").read_text()
ROWS = re.findall(r"^\| (.+?) \| (.+) \|$", TEXT.partition("## Recipes")[0], re.MULTILINE)
RECIPES = dict(
    re.findall(
        r"^### (.+?)\n\n(.*?)(?=^##|\Z)",
        TEXT.partition("## Recipes")[2].partition("\n## Rooms")[0] + "\n## ",
        re.MULTILINE | re.DOTALL,
    )
)
FOLDERS = {path.name for path in CHECKOUT.iterdir() if path.is_dir()} - {".git"}


IMAGES = ("trainyard/torch-cpu",)
"""Images with a name that looks like a path."""


def _paths(text: str) -> set[str]:
    """Whatever is code and looks like a file or a folder of the checkout."""
    code = re.findall(r"`([^`\s]+)`", text)
    return {
        path.rstrip("/")
        for path in code
        if path not in IMAGES
        and path.partition("/")[0] in FOLDERS
        or re.fullmatch(r"[\w<>.]+\.(py|md|yaml)", path)
    }


def _exists(path: str) -> bool:
    """`components/<noun>.py` is any file there."""
    return any(CHECKOUT.glob(re.sub(r"<\w+>", "*", path)))


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_every_path_of_a_document_exists(file: Path) -> None:
    text = file.read_text()
    named = _paths(text if file.name != "CHANGELOG.md" else text.partition("## 0.1.0")[0])
    if file.parent == CHECKOUT / "rehearsal":  # its table names files of its own folder
        named = {path for path in named if "/" in path}
    near = {path for path in named if (file.parent / path).exists()}
    kept = {path for path in named if path.startswith(".rehearsal/")}  # only while a world is there
    missing = {path for path in named - near - kept if not _exists(path)}
    assert missing == set()


def _docstrings(file: Path) -> Iterator[str]:
    """Docstrings of a module, its classes and functions, and the texts below its constants and fields."""
    for node in ast.walk(ast.parse(file.read_text())):
        for part in node.body if isinstance(node, BODIES) else ():
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                yield str(part.value.value)


BODIES = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
NAMED = re.compile(rf"(?<![\w/.-])(?:{'|'.join(map(re.escape, sorted(FOLDERS)))})/[\w/.<>-]+\.py\b")
"""A file of the checkout, wherever a docstring names it."""


def test_every_file_that_a_docstring_names_exists() -> None:
    named = [
        (str(file.relative_to(CHECKOUT)), path)
        for file in [*PRODUCT, *SHARED, *REHEARSAL]
        for text in _docstrings(file)
        for path in NAMED.findall(text)
    ]
    assert len(named) > 100
    assert [(file, path) for file, path in named if not _exists(path)] == []


NOTES = re.compile(
    r"shared[/\s]+(?:facts|reviews|workloads|notes)|\bfacts/|\bby-hand-and-\w|\bteams-and-queues\.md|"
    r"\b(?:trainer|karpenter|operate|rehearsal-recipes|lessons-from-peers)\.md"
)
"""Notes of ours that are in no checkout."""


def test_nothing_cites_notes_that_readers_do_not_have() -> None:
    """A source is something that a reader can open: upstream's file at a tag, an AWS guide, a test."""
    tracked = subprocess.run(
        ["git", "ls-files", "*.py", "*.json", "*.md"],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    files = {path: (CHECKOUT / path).read_text() for path in tracked}
    assert len(files) > 500
    assert {path: found for path, text in files.items() if (found := NOTES.findall(text))} == {}


def test_the_paths_of_contributing_are_found() -> None:
    assert len(_paths(TEXT)) > 80 and len(ROWS) > 35 and len(RECIPES) == 12
    assert not _exists("stacks/mistakes.py") and not _exists("components/<noun>.rs")


def test_a_row_of_contributing_is_short_and_stands_once() -> None:
    asked = [question for question, _ in ROWS if question != "I want to change"]
    assert len(set(asked)) == len(asked)
    assert [question for question, answer in ROWS if len(question) + len(answer) > 400] == []


# Questions of somebody who has never seen the project, as a reviewer asked them.
QUESTIONS: dict[str, tuple[str, ...]] = {
    "Add an instance type": (
        "trainyard/catalog/aws/instances.py",
        "trainyard/catalog/aws/offers.json",
    ),
    "defaults, such as those of Lustre": ("trainyard/settings/environment.py",),
    "Add a taint to GPU nodes": (
        "components/nodes/gpu_pool.py",
        "trainyard/objects/jobs/pod_template.py",
        "components/nodes/device_plugins.py",
        "trainyard/manifests/tolerations.py",
    ),
    "Add a rule": ("trainyard/rules/jobs.py", "trainyard/derive/job_view.py"),
    "Add a Trainer release": (
        "trainyard/catalog/versions.py",
        "trainyard/catalog/fields.json",
        "trainyard/objects/jobs/upstream_runtimes.py",
        "rehearsal/toolchain/programs.py",
        "rehearsal/charts.py",
        "rehearsal/kubelet/images.py",
        "tests/sdk/requirements-<version>.in",
    ),
    "Add a stack output": ("stacks/environment.py", "stacks/team.py", "__main__.py"),
    "message for a misspelt field": (
        "trainyard/manifests/field_rules.py",
        "trainyard/catalog/fields.json",
    ),
    "message for a misspelt, a missing or a wrongly typed setting": (
        "trainyard/settings/reading/explained.py",
        "trainyard/settings/job.py",
    ),
    "GPU nodes expire": ("components/nodes/gpu_pool.py",),
    "Add a store kind": (
        "trainyard/settings/stores.py",
        "trainyard/stores/kinds.py",
        "trainyard/plans/stores.py",
        "rehearsal/kubelet/drivers.py",
    ),
    "a second cluster": ("Pulumi.<stack>.yaml",),
    "IAM permission, such as one of Karpenter": ("trainyard/objects/iam/policies.py",),
    "another MPI runtime": (
        "trainyard/objects/jobs/trainer.py",
        "trainyard/settings/environment.py",
    ),
    "a NetworkPolicy": ("trainyard/objects/teams/team_network.py", "trainyard/derive/cluster.py"),
    "an alert, a dashboard, a query": (
        "trainyard/objects/metrics/alerts.py",
        "trainyard/objects/metrics/dashboards.py",
        "trainyard/objects/metrics/queries.py",
    ),
    "number of system nodes": (
        "trainyard/settings/environment.py",
        "components/nodes/system_nodes.py",
        "trainyard/reports/cost.py",
    ),
    "such as ImagePullBackOff": ("trainyard/operations/status/symptoms.py",),
    "--live` asks the account, and its deadline": ("trainyard/live/preflight.py",),
    "Teach the rehearsal one more refusal of AWS": (
        "rehearsal/aws/<service>.py",
        "rehearsal/aws/storage.py",
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_of_somebody_new_has_an_answer_with_its_files(question: str) -> None:
    answers = [answer for asked, answer in [*ROWS, *RECIPES.items()] if question in asked]
    assert len(answers) == 1
    assert set(QUESTIONS[question]) <= _paths(answers[0])


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_counts_the_files_that_it_lists(recipe: str) -> None:
    """One file a line; what applies sometimes is not counted."""
    lists = re.findall(r"\b(\d+) files:\n\n((?:- .*\n)+)", RECIPES[recipe])
    assert len(lists) == (2 if recipe == "Add a rule" else 1)
    assert [items.count("- `") for _, items in lists] == [int(number) for number, _ in lists]


def test_the_rooms_are_those_that_the_imports_are_tested_by() -> None:
    rooms = re.findall(r"^\| `([\w/]+)(?:\.py)?` \|", TEXT.partition("## Rooms")[2], re.MULTILINE)
    assert rooms == [room for floor in FLOORS for room in floor]


def test_errors_and_warnings_print_what_their_grammar_says() -> None:
    place = {"path": "<path>", "file": "<file>", "line": 7}
    error = InputError(**place, must="<must>", got="<got>", fix="<fix>")
    warning = InputWarning(**place, text="<text>")
    for problem in (error, warning):
        assert f"`{str(problem).replace(':7', ':<line>')}`" in TEXT


def test_every_rule_of_prose_has_an_example() -> None:
    words = TEXT.partition("## Words")[2].partition("\n## ")[0]
    rules = re.findall(r"^\d\. \*\*.*?(?=^\d\. |^$)", words, re.MULTILINE | re.DOTALL)
    assert len(rules) == 5
    assert [rule for rule in rules if not ("Before: " in rule and "After: " in rule)] == []


def test_the_license_is_the_one_that_the_readme_names() -> None:
    license_ = (CHECKOUT / "LICENSE").read_text()
    assert "Apache License" in license_ and "END OF TERMS AND CONDITIONS" in license_
    assert "[Apache 2.0](LICENSE)" in (CHECKOUT / "README.md").read_text()


def test_the_changelog_has_a_section_for_the_version_of_the_project() -> None:
    version = re.findall(r'^version = "(.+)"$', (CHECKOUT / "pyproject.toml").read_text(), re.M)[0]
    sections = re.findall(r"^## (\S+)", (CHECKOUT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[:2] == ["Unreleased", version]


def test_the_glossary_is_in_alphabetical_order_and_has_no_word_twice() -> None:
    page = (CHECKOUT / "docs" / "glossary.md").read_text()
    words = [word.lower() for word in re.findall(r"^\| \*\*(.+?)\*\*", page, re.MULTILINE)]
    assert words == sorted(set(words)) and {"pool", "store", "gang", "contract", "world"} <= {
        *words
    }
