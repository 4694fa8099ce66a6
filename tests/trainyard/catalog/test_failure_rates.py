"""How often nodes fail, and how often AWS takes spot nodes back."""

from __future__ import annotations

import pytest

from trainyard.catalog.failure_rates import failure_rate


def test_a_spot_node_ends_a_job_about_twice_as_often() -> None:
    """6.5 failures and 6.6 interruptions in 1000 node-days."""
    assert failure_rate(spot=False) == 6.5
    assert failure_rate(spot=True) == pytest.approx(6.5 + 6.6, abs=0.05)
