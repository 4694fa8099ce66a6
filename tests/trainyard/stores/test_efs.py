"""EFS stores: their mount targets and creation tokens."""

from __future__ import annotations

import pytest

from tests.support.stackfile import Edit, at, efs, environment_plan, values
from trainyard.catalog.aws.prices import price
from trainyard.catalog.aws.storage import Speed
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan
from trainyard.plans.identity import Identity
from trainyard.settings.reading.reader import read
from trainyard.settings.stores import EfsConfig
from trainyard.stores.efs import Efs

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


@pytest.mark.parametrize(
    ("region", "mibps", "warns"),
    [
        ("ap-northeast-2", 2000, True),
        ("ap-northeast-2", 1024, False),
        ("us-east-1", 3414, False),
    ],
)
def test_more_than_a_region_provisions_by_default_is_a_warning_that_names_aws_support(
    region: str, mibps: int, *, warns: bool
) -> None:
    """EFS refuses it unless the account asked for more, which only AWS knows."""
    home = {"throughput": "provisioned", "throughput_mibps": mibps}
    found = values(at("storage.home.efs", home), at("zone", f"{region}a"))
    said = [
        str(one)
        for one in plan_stack(
            read(found | {"aws:region": region}, stack="dev", project="trainyard")
        ).warnings
        if "throughput_mibps" in str(one)
    ]
    assert said == [
        "environment.storage.home.efs.throughput_mibps: EFS refuses 2000 MiB/s in ap-northeast-2 to an account"
        " that asked for no more than the default of 1024: open a case with AWS Support before `pulumi up`,"
        " or write 1024"
    ] * int(warns)


def test_provisioned_throughput_is_paid_by_the_month_and_decides_how_long_a_save_takes() -> None:
    kind, mibps = Efs(), 256
    speed = kind.checkpoint_store(
        EfsConfig(throughput="provisioned", throughput_mibps=mibps), "us-east-1"
    )
    assert speed and speed.disks() == Speed(write=mibps * 2**20, read=3 * mibps * 2**20)
    plan = efs(
        environment_plan(
            at("storage.home.efs", {"throughput": "provisioned", "throughput_mibps": mibps})
        )
    )
    [cost] = kind.costs("home", plan)
    assert (cost.sku, cost.units) == ("provisioned", mibps)
    assert price(cost.service, cost.sku, "us-east-1")
    assert [used.sku for used in kind.usage_costs("home", plan)] == ["standard"]


def test_how_fast_a_store_bursts_is_not_known_and_said_so() -> None:
    bursting = EfsConfig(throughput="bursting")
    assert Efs().checkpoint_store(bursting, "us-east-1") is None
    [warning] = Efs().checkpoint_warnings("path", "home", bursting)
    assert "50 MiB/s for each TiB stored" in warning.text
    assert [*Efs().checkpoint_warnings("path", "home", EfsConfig())] == []


def test_a_lifecycle_is_written_in_the_words_of_efs() -> None:
    lifecycle = {"infrequent_after_days": 1, "archive_after_days": 90, "back_on_access": True}
    plan = efs(environment_plan(at("storage.home.efs.lifecycle", lifecycle)))
    assert dict(plan.lifecycle) == {
        "transition_to_ia": "AFTER_1_DAY",
        "transition_to_archive": "AFTER_90_DAYS",
        "transition_to_primary_storage_class": "AFTER_1_ACCESS",
    }
    skus = [used.sku for used in Efs().usage_costs("home", plan)]
    assert skus == ["standard", "read", "write", "infrequent", "archive"]
