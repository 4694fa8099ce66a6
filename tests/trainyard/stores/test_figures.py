"""What reports are told of a store."""

from __future__ import annotations

from trainyard.catalog.aws.latencies import LATENCIES
from trainyard.stores.figures import took


def test_a_stage_that_happens_twice_takes_twice_as_long_also_where_it_is_slow() -> None:
    """`trainyard plan` prints both figures, and what begins only after another stage."""
    row = LATENCIES["helm.karpenter"]
    stage = took("charts", "helm.karpenter", after=("cluster",), times=2)
    assert (stage.seconds, stage.slow_seconds) == (2 * row.typical, 2 * row.slow)
    assert 0 < stage.seconds < stage.slow_seconds
    assert took("charts", "helm.karpenter").seconds == row.typical
    assert stage.after == ("cluster",) and took("charts", "helm.karpenter").after == ()
