"""Whatever pydantic refuses of a stack file, the error says what to write, in words of ours."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import pydantic
import pytest

from tests.support.everything import everything
from tests.support.stackfile import TEAM, at, planned, values
from trainyard.problems import InputError
from trainyard.settings.environment import StackConfig
from trainyard.settings.reading.mistake import Mistake
from trainyard.settings.reading.mistakes import EXPLANATIONS
from trainyard.settings.reading.patterns import PATTERNS
from trainyard.settings.reading.reader import read

SCHEMA = pydantic.TypeAdapter(StackConfig).core_schema
BOUNDS = {
    "gt": "greater_than",
    "ge": "greater_than_equal",
    "lt": "less_than",
    "le": "less_than_equal",
}
RAISES: dict[str, tuple[str, ...]] = {
    "bool": ("bool_type", "bool_parsing"),
    "dataclass": ("dataclass_type",),
    "dataclass-args": (
        "missing",
        "missing_keyword_only_argument",
        "unexpected_keyword_argument",
        "invalid_key",
    ),
    "datetime": (
        "datetime_type",
        "datetime_parsing",
        "datetime_from_date_parsing",
        "datetime_object_invalid",
        "timezone_aware",
    ),
    "dict": ("dict_type",),
    "float": ("float_type", "float_parsing", "finite_number"),
    "int": ("int_type", "int_parsing", "int_from_float", "int_parsing_size"),
    "literal": ("literal_error",),
    "str": ("string_type", "string_unicode"),
    "tuple": ("tuple_type",),
    # They hold other types, whose errors they pass on. The discriminator of jobs always decides.
    **dict.fromkeys(
        (
            *("dataclass-field", "default", "definition-ref", "definitions"),
            *("nullable", "tagged-union", "union"),
        ),
        (),
    ),
}
"""Kind of type of a setting → pydantic's error types that it can raise (pydantic_core 2.4x, list of
validation errors)."""
LIMITS = {"pattern": "string_pattern_mismatch", "min_length": "too_short", **BOUNDS}
"""Limit of a type → the error type of a value beyond it."""
WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    math.inf,
    10**400,
    "",
    "x y/z:",
    [],
    [None],
    [[1]],
    {},
    {"a": {"b": 1}},
    {1: 2},
    date(2026, 11, 22),
    datetime(2026, 11, 22, 5),
)
DEPTH = 9
"""Levels of a stack file, and one."""
PYDANTIC = re.compile(
    r"[Ii]nput should|valid (?:string|integer|tuple|dictionary|list|number)|Field required"
    r"|pydantic|instance of|trainyard/settings|should match pattern|keyword argument"
)
"""Words of pydantic, and of this program's files, which nobody who writes a stack file knows."""


def _kinds(schema: Any) -> Iterator[dict[str, Any]]:
    """Every type in a schema of pydantic_core."""
    if isinstance(schema, dict):
        if isinstance(schema.get("type"), str):
            yield schema
        for inner in schema.values():
            yield from _kinds(inner)
    elif isinstance(schema, list | tuple):
        for inner in schema:
            yield from _kinds(inner)


@pytest.mark.parametrize(
    ("stack", "file"), [("Dev", "dev"), ("my_stack", "my-stack"), ("1dev", "name-1dev")]
)
def test_a_name_that_no_stack_has_is_that_of_a_file_as_well(stack: str, file: str) -> None:
    """Nothing in the file can be written otherwise: both have to be renamed."""
    [error] = read(values(), stack=stack, project="trainyard").errors
    assert error.path == "stack"
    assert error.fix == f"rename the stack, and its file to Pulumi.{file}.yaml"


def test_every_error_type_that_a_setting_can_raise_is_explained() -> None:
    kinds = [*_kinds(SCHEMA)]
    assert {kind["type"] for kind in kinds} <= {*RAISES}, "a new kind of type needs a row"
    raised = {error for kind in kinds for error in RAISES[kind["type"]]}
    raised |= {LIMITS[limit] for kind in kinds for limit in LIMITS.keys() & kind.keys()}
    assert raised - EXPLANATIONS.keys() == set()


def test_every_pattern_of_a_setting_has_words_and_an_example_or_a_nearest_text() -> None:
    patterns = {kind["pattern"] for kind in _kinds(SCHEMA) if "pattern" in kind}
    assert patterns - PATTERNS.keys() == set()
    for text, pattern in PATTERNS.items():
        proposed = pattern.meant("/x y/") or pattern.example
        assert re.search(text, proposed), (text, proposed)


def _replaced(value: Any, depth: int, wrong: Any) -> Any:
    """The value with something wrong in the place of everything so deep in it."""
    if not depth:
        return wrong
    if isinstance(value, dict):
        return {key: _replaced(inner, depth - 1, wrong) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, depth - 1, wrong) for inner in value]
    return value


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong)[:30])
def test_no_wrong_value_of_any_setting_is_answered_with_words_of_pydantic(wrong: Any) -> None:
    found: list[InputError] = []
    for config, stack in ((everything(), "dev"), (values(stack="team-vision"), "team-vision")):
        assert stack == "dev" or TEAM in config
        for depth in range(1, DEPTH):
            changed = _replaced(config, depth, wrong)
            found += read(changed, stack=stack, project="trainyard").errors
    said = [str(error) for error in dict.fromkeys(found)]
    assert len(said) > 20 and not [line for line in said if PYDANTIC.search(line)]
    assert not [error for error in found if not error.fix or error.must == "be a value of its type"]


def meant_by(written: str, kind: str, *steps: str) -> Any:
    """The value that is proposed in the place of a text. `kind`: of the error, as pydantic calls it."""
    mistake = Mistake(
        steps=("environment", *steps),
        type=kind,
        value=written,
        limits={},
        is_key=False,
        in_manifest=False,
        written=written,
    )
    return EXPLANATIONS[kind](mistake).write


@pytest.mark.parametrize(
    ("written", "meant"),
    [("4800GiB", 4800), ("5TB", 4800), ("4.8TB", 4800), ("1.2 TiB", 1200), ("4800.5", None)],
)
def test_a_size_with_a_unit_is_read_as_the_nearest_one_that_is_sold(
    written: str, meant: int | None
) -> None:
    size = ("storage", "scratch", "lustre", "capacity_gib")
    assert meant_by(written, "int_parsing", *size) == meant


@pytest.mark.parametrize(
    ("written", "meant"), [("30m", 0.5), ("90 min", 1.5), ("2h", 2), ("1 day", 24), ("30", 30)]
)
def test_a_time_is_read_in_the_unit_of_the_setting(written: str, meant: float | None) -> None:
    assert meant_by(written, "float_parsing", "jobs", "t5-large", "expected_hours") == meant


@pytest.mark.parametrize(
    ("path", "value", "fix"),
    [
        ("storage.scratch.lustre.maintenance_window", "sunday 24:00", "write monday 00:00"),
        ("storage.scratch.lustre.maintenance_window", "7:16:30", "write sunday 16:30"),
        ("storage.scratch.lustre.maintenance_window", "some day", "write one such as sunday 16:30"),
        ("kms_key_arn", "alias/ml", "prints"),
        ("budget", {"dollars_a_month": "9k", "emails": ["a@b.co"]}, "write 9000"),
        ("budget", {"dollars_a_month": "$900", "emails": ["a@b.co"]}, "write 900"),
        ("budget", {"dollars_a_month": "$5,000", "emails": ["a@b.co"]}, "write 5000"),
        (
            "jobs.t5-large.checkpoints.directory",
            "s3://bucket/run",
            "write run; to have checkpoints in S3, use a Lustre",
        ),
        ("network.endpoints", "existing", "write one of s3, private, or delete it for s3"),
        (
            "jobs.t5-large.script",
            "torchrun --master_addr=$RANK t.py",
            "use PET_NODE_RANK in place of",
        ),
        ("jobs.t5-large.script", "if true; then\ntorchrun t.py", "close what is open: fi ends if"),
        ("jobs.t5-large.image", " ", "write a value"),
        ("storage.home.efs.lifecycle", {"back_on_access": True}, "write infrequent_after_days: 30"),
        ("storage.home.efs.throughput", 100, "write provisioned and throughput_mibps: 100"),
        ("registries", {"train": {"data": "drop"}}, "or leave it out for keep"),
        ("storage.scratch", "lustre", "write {lustre: {capacity_gib: 4800"),
        ("jobs.t5-large.nodes", -2, "write 2"),
    ],
)
def test_a_way_out_follows_from_what_was_written(path: str, value: Any, fix: str) -> None:
    assert any(fix in error.fix for error in planned(at(path, value)).errors)


def test_a_bound_says_its_reason_and_that_no_number_means_without_limit() -> None:
    own = "trainer.own_runtimes.torch-distributed-resilient.max_restarts"
    for path, value, must in (
        (own, -1, "be at least 0, and -1 does not mean without limit"),
        ("system_nodes.nodes", 11, "be at most 10: only controllers run there"),
    ):
        assert must in [error.must for error in planned(at(path, value)).errors]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://sets.s3.amazonaws.com/a", "s3://sets/a/"),
        ("https://s3.eu-west-1.amazonaws.com/sets/a/", "s3://sets/a/"),
        ("arn:aws:s3:::sets", "s3://sets/"),
        ("https://example.com/a", "one such as s3://bucket/prefix/"),
    ],
)
def test_the_bucket_that_an_address_means_is_written_as_a_uri(written: str, meant: str) -> None:
    link = {"r": {"s3": written, "path": "/data"}}
    errors = planned(at("storage.scratch.lustre.repositories", link)).errors
    assert f"write {meant}" in [error.fix for error in errors]
