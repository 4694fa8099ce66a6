"""workloads/accept/measure.py, whole, with the sizes and times of one GPU that two nodes share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "workloads/accept"))
import measure

measure.SECONDS["cuda"] = 6
measure.STORED_AT_MOST["cuda"] = 512 * measure.MIB
measure.SIZES["cuda"] = [2**20, 2**24, 2**26]
measure.PAIR_BYTES["cuda"] = 2**24
measure.main()
