"""The table of AWS types has a row for each type that a stack can have, and the SDKs of AWS and Pulumi know
what its rows name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

from policy_pack.taggable import source_of
from rehearsal.providers.aws.provider import KINDS
from tests.conftest import GOLDEN
from tests.support import aws_cli
from tests.support.stacks import STACKS, recorded
from trainyard.catalog.aws_types.row import Finder
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.stores.kinds import KINDS as STORE_KINDS

TYPE = re.compile(r"\baws:\w+/\w+:[A-Z]\w+")
INSIDE = {"aws:eks/cluster:Cluster"}
"""Made by pulumi-eks's component, in which the recording engine does not look."""
FOUND = {kind: row.finder for kind, row in AWS_TYPES.items() if row.finder}
AROUND = {"account", "region", "partition"}


def test_every_type_of_a_recorded_stack_has_a_row_and_every_row_is_recorded() -> None:
    reviewed = {kind for file in GOLDEN.iterdir() for kind in TYPE.findall(file.read_text())}
    graphs = {node.kind for stack in STACKS for node in recorded(stack).starting("aws:")}
    assert {*reviewed, *graphs, *INSIDE} == AWS_TYPES.keys()


@pytest.mark.parametrize("kind", AWS_TYPES)
def test_inputs_that_a_row_names_are_those_of_the_type(kind: str) -> None:
    row, source = AWS_TYPES[kind], source_of(kind)
    assert source
    inputs = set(re.findall(r"def (\w+)\(self\)", source.read_text()))
    named = {path.partition(".")[0] for path in (*row.replaces, row.untold, row.key) if path}
    assert {_snake(name) for name in named} <= inputs
    assert not (row.untold and row.untold not in row.replaces)


@pytest.mark.parametrize("kind", AWS_TYPES)
def test_what_replaces_an_object_is_an_input_that_the_plugin_knows_and_updates_nowhere(
    kind: str,
) -> None:
    """The plugin of the rehearsal reads from the row what replaces an object."""
    replacing = {path.partition(".")[0] for path in AWS_TYPES[kind].replaces}
    assert replacing <= KINDS[kind].inputs
    assert not {*AWS_TYPES[kind].replaces} & {*KINDS[kind].updates, *KINDS[kind].fixed}


@pytest.mark.parametrize("kind", FOUND)
def test_a_finder_asks_what_the_service_answers(kind: str) -> None:
    finder, source = FOUND[kind], source_of(kind)
    assert source
    asked, answered = _shapes(finder.service, finder.call)
    assert {*finder.asks, *filter(None, (finder.filters, finder.pages))} <= asked.members.keys()
    assert not finder.pages or finder.pages in answered.members
    item = _at(answered, finder.items)
    for path in filter(None, (*finder.matches, finder.state, "Tags" * finder.tagged)):
        assert _at(item, path), path
    inputs = set(re.findall(r"def (\w+)\(self\)", source.read_text()))
    for name in _names(finder):
        assert name in {*item.members, *AROUND} or _snake(name) in inputs, name


def test_the_types_that_hold_data_are_those_of_the_stores() -> None:
    holding = {kind for kind, row in AWS_TYPES.items() if row.holds_data}
    assert holding == {kind.holds_data for kind in STORE_KINDS.values()}


def test_every_type_that_a_stack_protects_has_commands_that_delete_it() -> None:
    """The reader of a list of what was kept had an id, and no way to end what it costs."""
    made = [*_made_by_components()]
    assert len(made) > 40
    protected = {name for name, call in made if "protect" in _keywords(call)}
    deleted = {kind for kind, row in AWS_TYPES.items() if row.deletions}
    assert protected == {
        f"aws.{kind.split(':')[1].split('/')[0]}.{kind.rpartition(':')[2]}" for kind in deleted
    }


def _made_by_components() -> Iterator[tuple[str, ast.Call]]:
    """Each call in components/ that makes an AWS resource, under its name there."""
    for file in (Path(__file__).parents[2] / "components").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("aws."):
                yield ast.unparse(node.func), node


def _keywords(call: ast.Call) -> set[str | None]:
    return {node.arg for node in ast.walk(call) if isinstance(node, ast.keyword)}


@pytest.mark.parametrize("kind", [kind for kind, row in AWS_TYPES.items() if row.deletions])
def test_commands_that_delete_an_object_are_those_of_the_aws_cli(kind: str) -> None:
    for command in AWS_TYPES[kind].deletions:
        assert [*aws_cli.faults(command)] == []
        assert command.count("{region}") == command.count("aws ")
    assert "{id}" in AWS_TYPES[kind].deletions[-1]


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("aws fsx remove-file-system --file-system-id fs-1", "no such command"),
        ("aws fsx delete-file-system --filesystem-id fs-1", "no --filesystem-id"),
        ("aws fsx delete-file-system --region x", "--file-system-id is missing"),
        ("aws s3 rb s3://it --recursive", "no --recursive"),
        ("aws efs describe-mount-targets --query 'MountTargets[].Id'", "finds nothing"),
        ("true | xargs -r aws ecr delete-repository --force", "--repository-name is missing"),
    ],
)
def test_a_command_that_the_aws_cli_has_not_is_found(command: str, fault: str) -> None:
    assert any(fault in each for each in aws_cli.faults(command))


def test_a_type_has_calls_of_its_own_or_beside_those_of_cloudformation() -> None:
    assert [kind for kind, row in AWS_TYPES.items() if row.calls and row.calls_beside] == []


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


@cache
def _shapes(service: str, call: str) -> tuple[Any, Any]:
    """Those of the question and of the answer."""
    model = botocore.session.get_session().get_service_model(service)
    names: Any = model.operation_names
    [name] = [name for name in names if xform_name(name) == call]
    operation = model.operation_model(name)
    return operation.input_shape, operation.output_shape


def _at(shape: Any, path: str) -> Any:
    """The shape at a path; of a list, that of its members."""
    for step in path.split(".") if path else ():
        if not step.isdecimal():
            shape = shape.members[step]
        if shape.type_name == "list":
            shape = shape.member
    return shape


def _names(finder: Finder) -> Iterator[str]:
    """Names in the templates of a finder."""
    lists = [each if isinstance(each, list) else [each] for each in finder.asks.values()]
    for template in (*sum(lists, []), *finder.matches.values(), finder.id):
        for _, name, _, _ in Formatter().parse(template):
            if name:
                yield name.partition("[")[0]
