"""The ruler of the benchmarks."""

import pytest

from benchmarks import measure


def test_a_small_process_is_small_however_large_the_one_that_measures_it_is() -> None:
    """Linux counts the memory of who starts a process as the process's own."""
    large = bytearray(200 << 20)
    large[:: 4 << 10] = b"x" * len(large[:: 4 << 10])
    runs = measure.in_turns({"small": ["-c", ""], "large": ["-c", "b'x' * (100 << 20)"]}, rounds=1)
    assert runs["small"].rss_mib < 60 < 100 < runs["large"].rss_mib


def test_a_process_that_fails_is_named_and_not_measured() -> None:
    with pytest.raises(RuntimeError, match=r"^-c raise SystemExit\(3\) ended with 3$"):
        measure.in_turns({"failing": ["-c", "raise SystemExit(3)"]}, rounds=1)
