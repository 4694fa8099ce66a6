"""Capacity Blocks as EC2 sells them.

Source: EC2 user guide, Capacity Blocks for ML (2026-11): 1, 2, 4, 8, 16, 32 or 64 instances; a block
ends at 11:30 UTC.
"""

from __future__ import annotations

SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Instances of a block."""


END = (11, 30)
"""Hour and minute in UTC at which every block ends."""
