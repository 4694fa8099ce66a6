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
from trainyard.catalog.versions import TRAINYARD
from trainyard.cli.new.project import TEXTS
from trainyard.problems import InputError, InputWarning

TEXT = (CHECKOUT / "CONTRIBUTING.md").read_text()
RECIPES = dict(
    re.findall(
        r"^### (.+?)\n\n(.*?)(?=^##|\Z)",
        TEXT.partition("## Recipes")[2].partition("\n## Words")[0] + "\n## ",
        re.MULTILINE | re.DOTALL,
    )
)
IMAGES = ("trainyard/torch-cpu",)
"""Images of containers, whose names begin as the folder of the brain does."""
OF_A_PROJECT = {
    name
    for file in TEXTS.glob("*.txt")
    for name in re.findall(r"^=== (.+)$", file.read_text(), re.MULTILINE)
}
"""Files that `trainyard new` writes."""
FOLDERS = {path.name for path in CHECKOUT.iterdir() if path.is_dir()} - {".git"}


def _paths(text: str) -> set[str]:
    """Whatever is code and looks like a file or a folder of the checkout."""
    code = re.findall(r"`([^`\s]+)`", text)
    return {
        path.partition("::")[0].rstrip("/")
        for path in code
        if (path.partition("/")[0] in FOLDERS and not path.startswith(IMAGES))
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
    missing = {path for path in named - near - kept - OF_A_PROJECT if not _exists(path)}
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


SENTENCES = (
    "benchmarks",
    "components",
    "development",
    "policy_pack",
    "rehearsal",
    "stacks",
    "tests/support",
    "trainyard",
)
"""Folders whose docstrings open as sentences. Add a folder here once all of its docstrings do."""
IN_PODS = CHECKOUT / "trainyard" / "in_cluster"
"""Programs whose texts are in digests of recorded graphs, and so keep the docstrings that they have."""
UNCHECKED = (IN_PODS, CHECKOUT / "rehearsal" / "tests", CHECKOUT / "development" / "templates")
"""Folders in those of SENTENCES whose docstrings are not checked. The last has copies of samples."""
FRAGMENT = re.compile(
    r"(What|Who|Whom|Whose|Which|Whether|How|Why|Those|The same|That of)\b|(Where|When)\b[^,.:]*[.:]"
)
"""Opening of a docstring that is a question without a verb of its own, or that needs its neighbour."""


@pytest.mark.parametrize("room", SENTENCES)
def test_a_docstring_opens_as_a_sentence_that_needs_no_neighbour(room: str) -> None:
    texts = [
        (str(file.relative_to(CHECKOUT)), " ".join(text.split()))
        for file in sorted((CHECKOUT / room).rglob("*.py"))
        if not any(file.is_relative_to(folder) for folder in UNCHECKED)
        for text in _docstrings(file)
    ]
    assert len(texts) > 40
    assert [(file, text) for file, text in texts if FRAGMENT.match(text)] == []


@pytest.mark.parametrize(
    ("text", "is_fragment"),
    [
        ("Those meant; empty: all.", True),
        ("Whose private subnets use it.", True),
        ("Where jobs can wait.", True),
        ("The same where Pulumi decides when each goes.", True),
        ("Values that the rule applies to. Empty: all values.", False),
        ("Where the stack names a key, AWS encrypts with it.", False),
        ("Whatever is code and looks like a file.", False),
    ],
)
def test_a_fragment_is_told_from_a_sentence(text: str, is_fragment: bool) -> None:
    assert bool(FRAGMENT.match(text)) is is_fragment


def test_every_file_that_a_docstring_names_exists() -> None:
    programs = CHECKOUT.glob("trainyard/in_cluster/**/*.py")
    named = [
        (str(file.relative_to(CHECKOUT)), path)
        for file in [*PRODUCT, *SHARED, *REHEARSAL, *programs]
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
    assert len(_paths(TEXT)) > 80 and len(RECIPES) > 12
    assert not _exists("stacks/mistakes.py") and not _exists("components/<noun>.rs")


def test_readme_and_contributing_are_short_enough_to_be_read() -> None:
    assert len((CHECKOUT / "README.md").read_text().splitlines()) <= 120
    assert len(TEXT.splitlines()) <= 220


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_counts_the_files_that_it_lists(recipe: str) -> None:
    """What applies sometimes stands in sentences after the list, and is not counted."""
    lists = re.findall(r"\b(\d+) files: (.*?)\.(?=\s[A-Z]|\s*$)", RECIPES[recipe], re.DOTALL)
    assert len(lists) == (2 if recipe == "Add a rule" else 1)
    for number, listed in lists:
        parts = [part for part in listed.split(";") if _paths(part)]
        assert len(parts) == int(number), parts


def test_the_rooms_are_those_that_the_imports_are_tested_by() -> None:
    """In the order of the floors; rooms of one floor stand side by side."""
    rooms = re.findall(r"^\| `(trainyard/[\w/]+)(?:\.py)?` \|", TEXT, re.MULTILINE)
    listed = iter(rooms)
    for floor in FLOORS:
        assert {next(listed) for _ in floor} == {*floor}
    assert [*listed] == []


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
    sections = re.findall(r"^## (\S+)", (CHECKOUT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[:2] == ["Unreleased", TRAINYARD]


BY_HAND = (CHECKOUT / "docs/by-hand.md").read_text()
THINGS = [
    row.strip("| ").split(" | ")
    for row in BY_HAND.splitlines()
    if row.startswith("| ") and not row.startswith("| what people do")
]
"""Rows of the page: what people do by hand, what does it here, and tests."""


def test_every_thing_that_people_do_by_hand_is_there_once() -> None:
    assert len({what for what, *_ in THINGS}) == len(THINGS) == 104
    assert f"the {len(THINGS)} things" in BY_HAND


@pytest.mark.parametrize("thing", THINGS, ids=lambda thing: thing[0])
def test_a_thing_that_people_do_by_hand_has_a_test_or_says_why_not(thing: list[str]) -> None:
    _, here, proof = thing
    tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", proof)
    assert here and (tests or re.match(r"none: .{20}", proof)), thing
    for file, name in tests:
        text = (CHECKOUT / file).read_text()
        assert re.search(rf"^(?:async )?def {name}\(", text, re.MULTILINE), (file, name)


def test_the_glossary_is_in_alphabetical_order_and_has_no_word_twice() -> None:
    page = (CHECKOUT / "docs" / "glossary.md").read_text()
    words = [word.lower() for word in re.findall(r"^\| \*\*(.+?)\*\*", page, re.MULTILINE)]
    assert words == sorted(set(words)) and {"pool", "store", "gang", "contract", "world"} <= {
        *words
    }
