"""The component of an environment: the graph of a stack file below one component, and refusals in the words
of a stack file."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.errors import InputPropertiesError
from pulumi.output import UNKNOWN

from package.outer import HOME, LINK
from package.schema import ENVIRONMENT, schema
from stacks.caller import AS_CALLER
from tests.support.package import inside, made, tops
from tests.support.recording import CHECKOUT, deploy, stack_values
from tests.support.stackfile import ENVIRONMENT as SETTINGS
from tests.support.stackfile import Edit, at, planned, without

DEV: dict[str, Any] = stack_values("dev")[SETTINGS]
GOLDEN = CHECKOUT / "tests" / "golden" / "dev.graph.json"


def edited(*edits: Edit) -> dict[str, Any]:
    given = copy.deepcopy(DEV)
    for edit in edits:
        edit(given)
    return given


def refused(folder: Path, arguments: Any, **engine: Any) -> str:
    with pytest.raises(InputPropertiesError) as found:
        made(ENVIRONMENT, arguments, folder, **engine)
    return found.value.message


def test_the_graph_is_that_of_the_stack_file_below_one_component(tmp_path: Path) -> None:
    graph, _ = made(ENVIRONMENT, DEV, tmp_path)
    assert inside(graph, ENVIRONMENT) == json.loads(GOLDEN.read_text())
    assert tops(graph) == [ENVIRONMENT]


def test_charts_are_reached_by_a_link_that_does_not_hide_folders_of_the_program(
    tmp_path: Path,
) -> None:
    (tmp_path / "components").mkdir()
    graph, _ = made(ENVIRONMENT, DEV, tmp_path)
    chart = graph["Release kubeflow-trainer-crds"].inputs["chart"]
    assert (tmp_path / chart / "Chart.yaml").is_file()
    assert (tmp_path / LINK).resolve() == HOME
    assert [*(tmp_path / "components").iterdir()] == []


def test_a_link_of_another_release_is_replaced(tmp_path: Path) -> None:
    (tmp_path / LINK).symlink_to(tmp_path / "gone")
    made(ENVIRONMENT, DEV, tmp_path)
    assert (tmp_path / LINK).resolve() == HOME
    (tmp_path / LINK).unlink()
    (tmp_path / LINK).symlink_to(tmp_path)
    made(ENVIRONMENT, DEV, tmp_path)
    assert (tmp_path / LINK).resolve() == HOME


def test_outputs_are_those_of_the_schema(tmp_path: Path) -> None:
    graph, state = made(ENVIRONMENT, DEV, tmp_path)
    assert {*state} == {*schema()["resources"][ENVIRONMENT]["properties"]}
    [urn] = [node.urn for node in graph.nodes.values() if node.kind == ENVIRONMENT]
    assert urn in graph.registered
    assert isinstance(state["kubeconfig"], pulumi.Output)


WRONG = (
    at("pools.h100.max_nodes", 0),
    at("zone", "ap-northeast-2z"),
    at("pool", {}),
    without("trainer"),
)


def test_every_fault_is_refused_at_once_as_in_a_stack_file(tmp_path: Path) -> None:
    arguments = edited(*WRONG)
    errors = planned(*WRONG).errors
    said = refused(tmp_path, arguments, preview=True)
    first, *lines = said.splitlines()
    assert len(errors) >= 4
    assert first == f"{len(errors)} errors in the arguments of platform"
    assert lines == [f"  error    {str(each).removeprefix('environment.')}" for each in errors]
    assert "pools.h100.max_nodes: must be" in said


def test_nothing_is_registered_of_what_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, edited(*WRONG))
    assert not (tmp_path / LINK).exists()


def test_a_secret_in_clear_is_not_shown(tmp_path: Path) -> None:
    token = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567"
    said = refused(tmp_path, edited(at("jobs.t5-large.env", {"HF_TOKEN": token})))
    assert "jobs.t5-large.env.HF_TOKEN: must not contain a secret" in said and token not in said


def test_the_account_follows_from_the_settings_of_the_stack(tmp_path: Path) -> None:
    config = {
        "aws:region": "ap-northeast-2",
        "aws:allowedAccountIds": '["111122223333"]',
        "shop:size": "big",
    }
    graph, _ = made(ENVIRONMENT, DEV, tmp_path, config=config)
    assert graph["pulumi:providers:aws aws"].inputs["allowedAccountIds"] == '["111122223333"]'
    assert "aws:region: must be set" in refused(tmp_path, DEV, config={"shop:size": "big"})


def test_only_a_preview_that_is_asked_to_takes_no_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {
        "aws:region": "ap-northeast-2",
        "aws:assumeRoles": '[{"roleArn": "arn:aws:iam::123456789012:role/deployer"}]',
    }

    def has_role(*, preview: bool) -> bool:
        graph, _ = made(ENVIRONMENT, DEV, tmp_path, config=config, preview=preview)
        return "role/deployer" in graph.golden()

    assert has_role(preview=True)
    monkeypatch.setenv(AS_CALLER, "true")
    assert not has_role(preview=True)
    assert has_role(preview=False)


def test_a_whole_number_can_have_a_point(tmp_path: Path) -> None:
    """The engine sends every number as one with a point."""
    graph, _ = made(ENVIRONMENT, edited(at("pools.h100.max_nodes", 2.0)), tmp_path)
    assert inside(graph, ENVIRONMENT) == json.loads(GOLDEN.read_text())


KEY = "arn:aws:kms:ap-northeast-2:111122223333:key/0f7f2b1e-6d3c-4a1f-9a63-5f1d2c3b4a59"
Make = Callable[[], Any]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("zone", lambda: UNKNOWN, "zone: must be known in a preview"),
        ("pools", lambda: UNKNOWN, "pools: must be known in a preview"),
        ("network", lambda: {"vpc_id": UNKNOWN}, "network.vpc_id: must be known in a preview"),
        ("zone", lambda: pulumi.Output.secret("no-zone-9x"), "zone: must be a zone"),
        ("production", lambda: pulumi.Output.secret(False), "production: must not be a secret"),
    ],
    ids=["text", "map", "looked up", "wrong secret", "no text"],
)
def test_a_value_that_the_plan_follows_from_is_refused_in_one_sentence(
    tmp_path: Path, path: str, value: Make, sentence: str
) -> None:
    said = refused(tmp_path, lambda: {**DEV, path: value()}, preview=True)
    assert said.startswith("1 error in") and sentence in said and "Fix: " in said, said
    assert "no-zone-9x" not in said and "not-known-yet" not in said


def test_a_preview_goes_on_with_what_is_not_known_yet(tmp_path: Path) -> None:
    def arguments() -> dict[str, Any]:
        return {**DEV, "kms_key_arn": UNKNOWN, "tags": {"owner": UNKNOWN, "unit": "research"}}

    graph, _ = made(ENVIRONMENT, arguments, tmp_path, preview=True)
    assert "not-known-yet" not in graph.golden()
    lustre = graph["LustreFileSystem scratch"]
    assert lustre.inputs["kmsKeyId"] == "$unknown"
    assert lustre.inputs["tags"]["owner"] == "$unknown"
    assert lustre.inputs["tags"]["unit"] == "research"


def test_a_secret_stays_one_wherever_the_plan_writes_it(tmp_path: Path) -> None:
    def arguments() -> dict[str, Any]:
        return {**DEV, "kms_key_arn": pulumi.Output.secret(KEY)}

    graph, _ = made(ENVIRONMENT, arguments, tmp_path)
    assert graph["LustreFileSystem scratch"].inputs["kmsKeyId"] == {"$secret": KEY}
    in_clear = [str(each) for each in graph.nodes.values() if KEY in _clear(each.inputs)]
    assert in_clear == []


def _clear(value: Any) -> str:
    """The text of inputs without what is a secret."""
    if isinstance(value, dict):
        return "" if "$secret" in value else "".join(map(_clear, value.values()))
    return "".join(map(_clear, value)) if isinstance(value, list) else str(value)


def test_a_resource_that_an_argument_comes_from_outlives_everything(tmp_path: Path) -> None:
    def arguments() -> dict[str, Any]:
        key = pulumi.CustomResource("test:index:Key", "key", {"arn": KEY})
        return {**DEV, "kms_key_arn": key.urn.apply(lambda _: KEY)}

    graph, _ = made(ENVIRONMENT, arguments, tmp_path)
    needed = graph["test:index:Key key"].urn
    ours = [
        each for each in graph.nodes.values() if not each.kind.startswith(("trainyard", "test"))
    ]
    assert [str(each) for each in ours if needed not in each.needs] == []


def test_the_graph_of_the_stack_file_is_as_it_was(tmp_path: Path) -> None:
    """A component that is made in this process leaves nothing behind for the next program."""
    made(ENVIRONMENT, DEV, tmp_path)
    assert json.loads(deploy("dev").golden()) == json.loads(GOLDEN.read_text())
