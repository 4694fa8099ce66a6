"""What FSx and EFS sell: the tables agree with each other and with the prices."""

from __future__ import annotations

from trainyard.catalog.aws import storage
from trainyard.catalog.aws.instances import GPU_TYPES
from trainyard.catalog.aws.prices import price


def test_every_kind_of_lustre_that_is_sold_has_a_price_where_prices_are_known() -> None:
    sold = ["SCRATCH_2", *(f"PERSISTENT_2-{tier}" for tier in storage.LUSTRE_TIERS)]
    assert all(price("fsx-lustre", sku, "us-east-1") for sku in sold)
    assert set(storage.LUSTRE_EFA_STEP_GIB) == set(storage.LUSTRE_TIERS)


def test_a_step_with_efa_always_buys_the_same_speed() -> None:
    assert {tier * step for tier, step in storage.LUSTRE_EFA_STEP_GIB.items()} == {4_800_000}
    assert all(step % storage.LUSTRE_STEP_GIB == 0 for step in storage.LUSTRE_EFA_STEP_GIB.values())


def test_lustre_over_efa_is_for_known_types_and_is_refused_on_g6e_with_the_reason() -> None:
    assert set(GPU_TYPES) > storage.EFA_LUSTRE_CLIENTS
    families = {GPU_TYPES[name].family for name in storage.EFA_LUSTRE_CLIENTS}
    assert all(GPU_TYPES[name].efa % taken == 0 for name, taken in storage.LNET_EFA_DEVICES.items())
    assert (
        not families & set(storage.EFA_LUSTRE_REFUSED)
        and "hangs" in storage.EFA_LUSTRE_REFUSED["g6e"]
    )


def test_efs_reads_and_writes_as_its_region_does() -> None:
    speeds = {
        region: storage.efs_speed(region)
        for region in ("us-east-1", "ap-northeast-2", "sa-east-1", None)
    }
    assert {
        region: (speed.write / storage.GIB, speed.read / storage.GIB)
        for region, speed in speeds.items()
    } == {
        "us-east-1": (5, 60),
        "ap-northeast-2": (5, 60),
        "sa-east-1": (1, 20),
        None: (1, 20),
    }


def test_one_node_reads_from_efs_as_fast_as_it_writes_and_no_faster_than_the_file_system() -> None:
    """AWS states one limit of a client, for both directions together."""
    client = storage.EFS_CLIENT
    assert client.read == client.write < storage.EFS_LARGE.write
