"""Types without a price, against the lists in Karpenter's source."""

from __future__ import annotations

import re

import pytest

from tests.trainyard.catalog.aws.test_prices import KARPENTER
from trainyard.catalog.aws.instances import CPU_TYPES, GPU_TYPES
from trainyard.catalog.upstream.karpenter import WITHOUT_PRICE, has_price
from trainyard.catalog.versions import KARPENTERS


def test_each_release_that_a_stack_may_have_is_in_the_table() -> None:
    assert {*WITHOUT_PRICE} == {*KARPENTERS}


@pytest.mark.parametrize(
    ("release", "source"),
    [
        pytest.param(
            release,
            source,
            marks=pytest.mark.skipif(
                not KARPENTER[source].exists(),
                reason="Karpenter's source is not in the module cache",
            ),
        )
        # The list of 1.15.2 is that of 1.15.0, generated on the same day.
        for release, source in {"1.14.1": "1.14.1", "1.15.2": "1.15.0"}.items()
    ],
)
def test_a_type_has_a_price_exactly_where_the_list_has_one(release: str, source: str) -> None:
    listed = {*re.findall(r'"([a-z0-9.-]+)": [\d.]+', KARPENTER[source].read_text())}
    types = [*GPU_TYPES, *CPU_TYPES]
    assert [t for t in types if has_price(release, t)] == [t for t in types if t in listed]
