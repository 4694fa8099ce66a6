"""How long AWS takes: medians, the slowest tenth, and how much each figure is worth."""

from __future__ import annotations

from trainyard.catalog.aws.latencies import LATENCIES, TYPICAL, lustre


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
