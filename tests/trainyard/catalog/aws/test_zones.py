"""Offers: where each type is sold, read fast enough for `trainyard check`."""

from __future__ import annotations

from trainyard.catalog.aws.instances import CPU_TYPES, GPU_TYPES
from trainyard.catalog.aws.zones import (
    OFFERS,
    ZONE_LETTERS,
    regions_with,
    zone_ids_with,
    zone_names,
)


def test_every_type_is_sold_somewhere_we_know() -> None:
    assert set(OFFERS) == {*GPU_TYPES, *CPU_TYPES}
    for name, regions in OFFERS.items():
        assert set(regions) <= set(ZONE_LETTERS) and all(
            zone_ids_with(name, region) for region in regions
        )


def test_seoul_sells_g6e_and_p5_in_different_zones() -> None:
    assert zone_ids_with("g6e.48xlarge", "ap-northeast-2") == ("apne2-az1", "apne2-az2")
    assert zone_ids_with("p5.48xlarge", "ap-northeast-2") == ("apne2-az1",)
    assert (
        zone_ids_with("p5e.48xlarge", "ap-northeast-2") == () and regions_with("p7.48xlarge") == ()
    )
    assert zone_names("ap-northeast-2")[0] == "ap-northeast-2a" and zone_names("mars-1") == ()
