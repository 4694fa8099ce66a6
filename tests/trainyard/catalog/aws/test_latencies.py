"""How long AWS takes: medians, the slowest tenth, and how much each figure is worth."""

from __future__ import annotations

import pytest

from trainyard.catalog.aws.latencies import (
    LATENCIES,
    TYPICAL,
    Latency,
    Proven,
    lustre,
    read_proven,
    with_proven,
)


def test_every_duration_has_a_median_a_slowest_tenth_a_count_and_a_source() -> None:
    for name, each in LATENCIES.items():
        assert 0 < each.typical <= each.slow, name
        assert each.source and each.n >= 0, name
    assert TYPICAL.keys() == LATENCIES.keys()


def test_a_figure_without_a_log_says_so() -> None:
    written = {name for name, each in LATENCIES.items() if each.n == 0}
    said = ("no log", "model", "BATCH_MAX_DURATION")
    assert all(any(word in LATENCIES[name].source for word in said) for name in written)


def test_a_gpu_node_counts_until_pods_can_start_on_al2023() -> None:
    node = LATENCIES["ec2.instance-boot"]
    assert (node.typical, node.n) == (129, 2) and "AL2023" in node.source


def test_the_row_of_a_lustre_file_system_follows_from_its_size_and_efa() -> None:
    assert lustre(1200, efa=False) == "fsx.lustre"
    assert lustre(48_000, efa=False) == "fsx.lustre.large"
    assert lustre(4800, efa=True) == "fsx.lustre.efa"


def _proven(seconds: float, instance_type: str = "") -> Proven:
    start = f"2026-11-27T10:00:{seconds % 60:02.0f}Z"
    return Proven(
        row="x", seconds=seconds, start=start, region="us-east-1", instance_type=instance_type
    )


def test_a_row_is_what_it_was_where_nobody_has_proven_it() -> None:
    row = LATENCIES["eks.cluster"]
    assert with_proven(row, []) is row
    assert {one.row for one in read_proven()} <= LATENCIES.keys()


def test_a_row_that_only_people_wrote_of_takes_what_was_seen_alone() -> None:
    row = Latency(typical=250, slow=300, n=0, source="write-ups, no log")
    found = with_proven(row, [_proven(400), _proven(100), _proven(130)])
    assert (found.typical, found.slow, found.n) == (130, 400, 3)
    assert found.source == "3 of trainyard prove: us-east-1 2026-11-27"


def test_each_line_of_a_row_counts_as_much_as_a_new_one() -> None:
    row = Latency(typical=100, slow=200, n=9, source="logs")
    found = with_proven(row, [_proven(1000)])
    assert found.typical == pytest.approx(100 * 10**0.1, abs=0.1) and found.n == 10
    assert found.slow == pytest.approx(200 * 5**0.1, abs=0.1)
    faster = with_proven(row, [_proven(50)])
    assert faster.typical < 100 and faster.slow == 200, (
        "the slowest tenth stays where none is above"
    )
    assert found.source == "logs; 1 of trainyard prove: us-east-1 2026-11-27"


def test_of_three_lines_the_slowest_is_the_slow_one() -> None:
    row = Latency(typical=100, slow=110, n=2, source="logs", families=("g6",))
    found = with_proven(row, [_proven(300, "g6e.8xlarge")])
    assert (found.slow, found.n, found.families) == (300, 3, ("g6", "g6e"))


def test_what_was_seen_is_never_slow_below_typical() -> None:
    row = Latency(typical=100, slow=101, n=5, source="logs")
    found = with_proven(row, [_proven(102)] * 50)
    assert found.typical <= found.slow
