"""How errors and warnings read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.support.recording import CHECKOUT
from trainyard.problems import REMOVE, At, InputError, InputWarning, Refused, counted, listed, told
from trainyard.settings.reading.yaml_file import as_yaml

TEAM = At("team", file="Pulumi.team-vision.yaml", line=3)
ERROR = InputError(path="environment.zone", must="be a zone", got="mars", fix="use ap-northeast-2a")
PLACED = InputError(path="spec.nodes", file="job.yaml", line=7, must="be 1", got="2", fix="write 1")
WARNING = InputWarning(path="jobs.a.image", text="is a tag")


def test_an_error_says_what_must_be_what_is_and_what_to_write() -> None:
    assert str(ERROR) == "environment.zone: must be a zone; got mars. Fix: use ap-northeast-2a"


def test_a_problem_names_file_and_line_behind_its_path_where_they_are_known() -> None:
    assert str(PLACED) == "spec.nodes [job.yaml:7]: must be 1; got 2. Fix: write 1"


def test_a_problem_of_a_whole_file_names_the_file() -> None:
    assert str(InputWarning(path="", file="job.yaml", text="is empty")) == "job.yaml: is empty"


def test_a_warning_says_where_and_what() -> None:
    assert str(WARNING) == "jobs.a.image: is a tag"


def test_a_fix_follows_from_the_value_that_ends_the_error() -> None:
    assert str(At("jobs.a.nodes").must("be at most 4", got=8, write=4)) == (
        "jobs.a.nodes: must be at most 4; got 8. Fix: write 4"
    )
    refused = TEAM.must("be off", got=True, write=False)
    assert (refused.got, refused.fix, refused.write) == ("true", "write false", False)
    assert TEAM.must("be left out", got="x", write=REMOVE).fix == "delete it"
    more = TEAM.must("be even", got=3, fix="write 4, or take another pool", write=4)
    assert (more.fix, more.write) == ("write 4, or take another pool", 4)


def test_a_setting_that_must_not_be_set_is_deleted() -> None:
    error = TEAM.not_set("beside name", got="vision", instead="delete name")
    assert str(error) == (
        "team [Pulumi.team-vision.yaml:3]: must not be set beside name; got vision."
        " Fix: delete it, or delete name"
    )
    assert (error.write, TEAM.not_set("without name", got=1).fix) == (REMOVE, "delete it")


def test_a_warning_is_about_its_place() -> None:
    assert TEAM.warning("is old") == InputWarning(
        path="team", file="Pulumi.team-vision.yaml", line=3, text="is old"
    )


def test_errors_come_last_where_the_reader_looks() -> None:
    assert listed([ERROR, WARNING]) == [f"  warning  {WARNING}", f"  error    {ERROR}"]


def test_what_is_said_of_many_places_is_one_line() -> None:
    jobs = [InputWarning(path=f"jobs.{name}.image", text="is a tag") for name in "abcd"]
    assert told([*jobs, WARNING]) == ["jobs.a.image and 4 other places: is a tag"]
    few = jobs[:3]
    assert told(few) == [str(job) for job in few]
    assert listed([ERROR, *jobs]) == [
        "  warning  jobs.a.image and 3 other places: is a tag",
        f"  error    {ERROR}",
    ]


def test_problems_are_counted_by_kind() -> None:
    assert counted([ERROR, ERROR, WARNING]) == "2 errors, 1 warning"
    assert (counted([ERROR]), counted([])) == ("1 error", "no errors")


def test_a_refusal_lists_every_error_on_a_line_of_its_own() -> None:
    refused = Refused([ERROR, PLACED])
    assert str(refused).splitlines() == [
        "2 errors in the stack file",
        f"  error    {ERROR}",
        f"  error    {PLACED}",
    ]
    assert refused.errors == (ERROR, PLACED)


# The grammar, in the source.

FIRST_WORDS = {
    *(
        "be",
        "not",
        "have",
        "lead",
        "list",
        "need",
        "agree",
        "wait",
        "let",
        "allow",
        "begin",
        "come",
        "contain",
        "do",
        "end",
    ),
    *(
        "find",
        "fit",
        "give",
        "go",
        "keep",
        "leave",
        "lie",
        "make",
        "mount",
        "name",
        "overlap",
        "pass",
        "read",
        "stand",
        "run",
    ),
    *("say", "set", "start", "stay", "take", "use", "clone", "include", "save"),
}
"""Infinitives that a requirement may begin with: it follows the word must."""
OLD_WORDS = re.compile(r"\b(faults?|notices?|ways? out)\b", re.IGNORECASE)
SOURCES = [
    path
    for path in sorted((CHECKOUT / "trainyard").rglob("*.py"))
    if not {"operations", "in_cluster", "objects", "catalog"} & {*path.parts}
]


def _calls(path: Path, *names: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names:
            yield node


def _beginnings(value: ast.expr) -> list[str]:
    """The texts that an expression begins with, as far as they are literal."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return [value.value]
    if isinstance(value, ast.JoinedStr) and value.values:
        return _beginnings(value.values[0])
    if isinstance(value, ast.IfExp):
        return _beginnings(value.body) + _beginnings(value.orelse)
    if isinstance(value, ast.BinOp):
        return _beginnings(value.left)
    return []


def _requirements(path: Path) -> Iterator[ast.expr]:
    """What a value must be: in errors, in the explanations, and in variables called must."""
    for call in _calls(path, "InputError", "error", "must"):
        yield from (keyword.value for keyword in call.keywords if keyword.arg == "must")
        if ast.unparse(call.func) == "mistake.error" or ast.unparse(call.func).endswith(".must"):
            yield call.args[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "must":
            yield node.value


def test_a_requirement_begins_with_an_infinitive() -> None:
    texts = {
        (f"{path.relative_to(CHECKOUT)}:{value.lineno}", text)
        for path in SOURCES
        for value in _requirements(path)
        for text in _beginnings(value)
    }
    assert len(texts) > 150
    assert {(place, text) for place, text in texts if text.split()[0] not in FIRST_WORDS} == set()


def test_every_error_in_the_source_has_a_fix_with_words_in_it() -> None:
    calls = [(path, call) for path in SOURCES for call in _calls(path, "InputError", "must")]
    assert len(calls) > 300
    for path, call in calls:
        fixes = [keyword.value for keyword in call.keywords if keyword.arg in ("fix", None)]
        derived = any(keyword.arg == "write" for keyword in call.keywords)
        assert fixes or derived, f"{path}:{call.lineno} has no fix"
        assert all(text.strip() for fix in fixes for text in _beginnings(fix)), (path, call.lineno)


def test_no_text_of_the_program_uses_the_old_words_for_errors_and_warnings() -> None:
    texts = {
        (str(path.relative_to(CHECKOUT)), node.value)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert len(texts) > 1000
    assert {(path, text) for path, text in texts if OLD_WORDS.search(text)} == set()


def test_the_old_words_are_found_where_they_stand() -> None:
    assert OLD_WORDS.search("no way out") and OLD_WORDS.search("two Faults")
    assert not OLD_WORDS.search("default") and not OLD_WORDS.search("noticeable")


def test_a_value_is_written_as_yaml_reads_it_again() -> None:
    for value in (
        ["a", "b"],
        {"A": "1"},
        "1.30",
        "no",
        "a: b",
        "a, b",
        "",
        4,
        True,
        "/data",
        ["1"],
    ):
        assert yaml.safe_load(as_yaml(value)) == value
    assert as_yaml({"A": "1", "b": ["g6e.48xlarge"]}) == '{A: "1", b: [g6e.48xlarge]}'


def test_a_terminal_shows_a_message_and_obeys_nothing_in_it() -> None:
    for value in ("\x1b[31mred", "\u202eevil", "a\x07", "zero\u200bwidth", "\x9b31m"):
        said = str(At("zone", "x.yaml", 1).must("be a zone", got=value, fix=f"delete {value}"))
        said += str(At(f"tags.{value}").warning(f"{value} is no zone"))
        assert said.isprintable() and value not in said
    assert str(At("a").warning("größer als 2 · 3 …")).endswith("größer als 2 · 3 …")


def test_a_long_value_is_cut_with_its_length() -> None:
    said = str(At("zone").must("be a zone", got="x" * 70_000, fix="write one of " + "y" * 70_000))
    assert len(said) < 2500 and "(70,000 characters)" in said


def test_thousands_of_errors_of_one_rule_are_a_few_lines() -> None:
    errors = [At(f"a.images[{n}]").must("be an image", got=n, fix="write it") for n in range(5000)]
    other = At("a.zone").must("be a zone", got="x", fix="write it")
    lines = listed([*errors, other])
    assert len(lines) == 5 and "a.images[3] and 4996 other places: must be an image" in lines[3]
    assert len(listed(errors[:20])) == 20
