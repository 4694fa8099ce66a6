"""`trainyard check --policies`: a stack file is judged by the policies without engine and account."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from policy_pack import check
from policy_pack.account import InventedAccount
from policy_pack.check import judge
from policy_pack.configured import CONFIG, config_errors
from policy_pack.kinds import CLUSTER
from tests.support import dispatching
from tests.support.existing_cluster import IN_CLUSTER
from tests.support.existing_stores import EXISTING_STORES
from tests.support.existing_vpc import EXISTING_VPC
from tests.support.recording import CHECKOUT
from tests.support.stackfile import ENVIRONMENT, Edit, at, values
from tests.support.stacks import BOUNDARY, STACKS
from tests.support.teams import both, by_name, checkout, listed
from trainyard.decide import plan_stack
from trainyard.settings.reading.reader import read_file

ROLE = "arn:aws:iam::123456789012:role/vision"

CHEAP = {"within-budget": {"max_usd_per_hour": 300}}
COST_CENTER = {"tagged": {"required": ["cost-center"]}}


def judged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, configured: Any, *edits: Edit, **config: Any
) -> int:
    written = values() | config
    for edit in (at("jobs", {}), *edits):
        edit(written[ENVIRONMENT])
    return text_judged(folder, monkeypatch, yaml.safe_dump({"config": written}), configured)


def text_judged(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, configured: Any) -> int:
    """Judge a stack file that consists of these characters."""
    (folder / "Pulumi.yaml").write_text("name: trainyard\n")
    (folder / "Pulumi.it.yaml").write_text(text)
    monkeypatch.chdir(folder)
    return judge("it", configured)


def test_a_stack_that_violates_nothing_passes_with_its_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, monkeypatch, json.loads(CONFIG.read_text())) == 0
    said = capsys.readouterr().out
    assert "warning  stores-protected: scratch: must be protected" in said
    assert "it: violates no policy that is mandatory" in said


def test_a_violation_is_an_error_with_its_policy_and_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, monkeypatch, CHEAP) == 1
    said = capsys.readouterr().out
    # Pools are registered in any order: the last one goes over the budget.
    over = "error    within-budget: (g6e|h100)-pool: must leave the pools within 300.00 USD"
    assert re.search(over, said)
    assert "Fix: lower environment.pools.<name>.max_nodes" in said
    assert "it: violates within-budget" in said


def test_tags_that_the_provider_sets_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, monkeypatch, COST_CENTER) == 1
    assert "tagged: network: must have cost-center among its tags" in capsys.readouterr().out
    set_by_all = {"aws:defaultTags": {"tags": {"cost-center": "17"}}}
    assert judged(tmp_path, monkeypatch, COST_CENTER, **set_by_all) == 0, capsys.readouterr().out


EXISTING: dict[str, tuple[Edit, ...]] = {
    "VPC": (EXISTING_VPC,),
    "VPC whose nodes reach no internet": (EXISTING_VPC, at("network.s3_endpoint", True)),
    "cluster": IN_CLUSTER,
    "stores": (EXISTING_VPC, EXISTING_STORES),
    "cluster for teams": (*IN_CLUSTER, at("teams", {"vision": {"deployer": ROLE}})),
}


@pytest.mark.parametrize("existing", EXISTING)
def test_a_stack_on_something_existing_is_judged(
    existing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert judged(tmp_path, monkeypatch, CHEAP, *EXISTING[existing]) == 1
    said = capsys.readouterr().out
    assert "error    within-budget" in said and "it: violates within-budget" in said


def test_what_exists_before_the_stack_is_not_judged_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {"stores-protected": "mandatory"}
    assert judged(tmp_path, monkeypatch, kept, EXISTING_VPC, EXISTING_STORES) == 0
    assert "warning" not in capsys.readouterr().out


REGISTRIES = {"images-from-allowed-registries": {"registries": ["quay.io/"]}}


@pytest.mark.parametrize(
    ("environment", "of_team"),
    [
        (dispatching.nothing, dispatching.nothing),
        (both(listed, at("storage.scratch.teams", "apart")), by_name),
    ],
    ids=["with a namespace of its own", "listed by its environment"],
)
def test_a_team_is_judged_as_if_its_environment_were_deployed_from_this_checkout(
    environment: Edit,
    of_team: Edit,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(checkout(tmp_path, environment, of_team))
    assert judge("team-vision", REGISTRIES) == 1
    assert "images-from-allowed-registries: vit-base: must take" in capsys.readouterr().out


def test_an_environment_that_sends_jobs_to_others_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(dispatching.checkout(tmp_path))
    assert judge(dispatching.MANAGER, COST_CENTER) == 1
    assert "tagged: dispatch" in capsys.readouterr().out


def test_the_errors_of_a_stack_file_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, monkeypatch, {}, at("zone", "nowhere-1a")) == 1
    assert "environment.zone" in capsys.readouterr().out


def test_a_look_up_without_an_answer_is_said_and_not_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(InventedAccount, "_getRouteTables")
    assert judged(tmp_path, monkeypatch, {}, EXISTING_VPC) == 1
    assert "account.py does not answer aws:ec2/getRouteTables" in capsys.readouterr().out


EVERY = {
    "all": "mandatory",
    "tagged": {"required": ["nobody-has-it"]},
    "images-from-allowed-registries": {"registries": ["nowhere/"]},
    "within-budget": {"max_usd_per_hour": 1},
    "own-key": {"keys": ["arn:aws:kms:*:000000000000:key/"]},
    "buckets-own-key": {"keys": ["arn:aws:kms:*:000000000000:key/"]},
}


@pytest.mark.parametrize("stack", STACKS)
def test_every_stack_is_judged_by_every_policy(
    stack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [*config_errors(EVERY)] == []
    text = yaml.safe_dump({"config": values(*STACKS[stack])})
    assert text_judged(tmp_path, monkeypatch, text, EVERY) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("it: violates images-from-allowed-registries, own-key, ")
    assert last.endswith("tagged, within-budget")


def test_the_policies_see_a_resource_as_the_engine_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a transform has changed, and another resource as its id."""
    found: list[Any] = []
    monkeypatch.setattr(check, "violations", lambda shown, _: found.extend(shown) or ())
    edits = at("cluster.scaling_tier", "tier-xl"), at("permissions_boundary", BOUNDARY)
    assert judged(tmp_path, monkeypatch, {}, *edits) == 0
    [cluster] = [one for one in found if one.type == CLUSTER]
    assert cluster.part("controlPlaneScalingConfig", "tier") == "tier-xl"
    assert cluster.part("serviceRole") == "control-plane-id"


DATE = re.compile(r"\b20\d\d(?=-\d\d-\d\d)")
DATED = {
    f"{path.name} {block.split()[1]}": block
    for path in (CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md")))
    for block in re.findall(r"```yaml\n(.*?)```", path.read_text(), re.DOTALL)
    if DATE.search(block)
}
"""Examples of the documents that have a date."""
assert DATED, "docs/capacity.md has the times of a Capacity Block"


def with_lines(setting: str, lines: str, *, indent: int) -> str:
    """The dev stack file with more lines below the line of a setting."""
    text = yaml.safe_dump({"config": values(at("jobs", {}), at("tags", {"a": "b"}))})
    [above] = [line for line in text.splitlines() if line.strip() == f"{setting}:"]
    more = "".join(f"{' ' * indent}{line}\n" for line in lines.splitlines())
    return text.replace(f"{above}\n", f"{above}\n{more}", 1)


@pytest.mark.parametrize("example", DATED)
def test_an_example_of_the_documents_that_has_a_date_is_judged(
    example: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    setting, _, lines = DATE.sub("2098", DATED[example]).partition("\n")
    assert setting == "pools:", "write a test of its own for a date that is not one of a pool"
    text = with_lines("pools", lines, indent=4)
    assert text_judged(tmp_path, monkeypatch, text, {}) == 0, capsys.readouterr().out
    assert "it: violates no policy that is mandatory" in capsys.readouterr().out


SCALARS = """
word
'quoted'
"1.30"
1.30
1e-3
1_000
017
0o17
0x1f
+1e3
-0.0
.inf
.nan
12:30
1:30:00
on
yes
true
NULL
~
2027-01-04
2027-01-04T11:30:00Z
2027-01-04 11:30:00.5 +9
2027-13-40
!!str 4
!!int 4
!!float 4
!!null x
!!bool yes
!!binary aGVsbG8=
!!binary /w==
!!timestamp 2027-01-04
!!timestamp 20270104
!!set {a, b}
!!omap [a: 1]
""".splitlines()
"""A value of each kind that YAML has."""


def test_every_kind_of_value_that_yaml_has_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the settings of the engine, which may be anything."""
    alone = "".join(f"pulumi:s{n}: {scalar}\n" for n, scalar in enumerate(SCALARS))
    inner = "".join(f"- {{at: {scalar}}}\n" for scalar in SCALARS)
    text = with_lines("config", f"{alone}pulumi:all:\n{inner}", indent=2)
    assert text_judged(tmp_path, monkeypatch, text, {}) == 0, capsys.readouterr().out


def test_the_policies_see_a_value_as_the_plan_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    meant, found = {}, []
    for number, scalar in enumerate(SCALARS):
        (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
        (tmp_path / "Pulumi.it.yaml").write_text(with_lines("tags", f"t: {scalar}", indent=6))
        plan = plan_stack(read_file("it", tmp_path)).plan
        if plan is not None:
            meant[f"t{number}"] = scalar, dict(plan.identity.extra_tags)["t"]
    assert {'"1.30"', "12:30", "word"} <= {scalar for scalar, _ in meant.values()}
    monkeypatch.setattr(check, "violations", lambda shown, _: found.extend(shown) or ())
    lines = "\n".join(f"{name}: {scalar}" for name, (scalar, _) in meant.items())
    text = with_lines("tags", lines, indent=6)
    assert text_judged(tmp_path, monkeypatch, text, {}) == 0, capsys.readouterr().out
    [network] = [one for one in found if one.type == "aws:ec2/vpc:Vpc"]
    seen = {name: network.part("tags", name) for name in meant}
    assert seen == {name: value for name, (_, value) in meant.items()}


def test_roles_that_enter_the_cluster_are_there() -> None:
    plan = plan_stack(read_file("dev", CHECKOUT)).accepted()
    found = InventedAccount(plan).look_up("aws:iam/getRole:getRole", {"name": "vision"})
    assert found["arn"].endswith(":role/vision")
