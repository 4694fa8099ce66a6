"""EFS stores: their mount targets and creation tokens."""

from __future__ import annotations

from plans.parts import Identity
from stacks.plan import plan_stack
from stacks.planned import EnvironmentPlan
from stacks.settings.reader import read
from tests.support.stackfile import Edit, at, efs, environment_plan, values

ME = Identity(project="trainyard", stack="dev", region="ap-northeast-2")


def test_efs_has_a_mount_target_where_a_pool_may_launch_nodes() -> None:
    def zones(*edits: Edit) -> str:
        return "".join(zone[-1] for zone in efs(environment_plan(*edits)).zones)

    b_and_c = at("pools.h100.fallback_zones", ["ap-northeast-2c", "ap-northeast-2b"])
    more = at(
        "pools.more",
        {
            "instance_types": ["p5.48xlarge"],
            "max_nodes": 1,
            "fallback_zones": ["ap-northeast-2b"],
        },
    )
    assert (zones(), zones(more), zones(more, b_and_c)) == ("a", "ab", "abc")
    assert zones(at("zone", "ap-northeast-2b"), at("pools.h100.fallback_zones", [])) == "b"


def test_a_creation_token_fits_and_stays_what_it_was_where_it_did() -> None:
    def token(stack: str, store: str) -> str:
        found = values(at(f"storage.{store}", {"efs": {}}))
        plan = plan_stack(read(found, stack=stack, project="trainyard")).accepted()
        assert isinstance(plan, EnvironmentPlan)
        return efs(plan, store).creation_token

    assert token("dev", "home") == ME.name("home")
    long = [token("s" * 32, "h" * 31 + end) for end in "ab"]
    assert [len(one) for one in long] == [64, 64] and long[0] != long[1]
