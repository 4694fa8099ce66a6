"""How the log of a training script says that it has resumed from a checkpoint, or has written one.

Sources, read on 2026-11-23: workloads/checkpoints.py; transformers `Trainer`; Lightning
`checkpoint_connector`; DeepSpeed `TorchCheckpointEngine`; Megatron-LM `checkpointing.py`. Each begins
a line or stands behind the prefix of a logger.
"""

from __future__ import annotations

import re

RESUMED = (
    re.compile(r"\bresumed from (step \d+|\S+)", re.I),
    re.compile(r"\bLoading model from (\S+?)\.?$"),
    re.compile(r"\bRestored all states from the checkpoint(?: file)? at (\S+)"),
    re.compile(r"\[Torch\] Loaded checkpoint from (\S+?)\.?$"),
    re.compile(r"\bsuccessfully loaded checkpoint from (\S+)", re.I),
)
"""Each has one group: what the script resumed from."""
SAVED = (
    re.compile(r"\bsaved(?: checkpoint)? (step \d+|step-\S+)", re.I),
    re.compile(r"\bSaving model checkpoint to (\S+)"),
    re.compile(r"\[Torch\] Saved (\S+?)\.?$"),
    re.compile(r"\bsuccessfully saved checkpoint from iteration +(\d+)", re.I),
    re.compile(r"\bsaved checkpoint(?: to)?:? (\S+)", re.I),
)
"""Each has one group: what the script wrote. transformers says it before it writes, the others after."""


def resumed_from(line: str) -> str | None:
    """What a line of a log says that the run resumed from; None where it says nothing."""
    return _first(RESUMED, line)


def saved(line: str) -> str | None:
    """What a line of a log says that the run has written; None where it says nothing."""
    return _first(SAVED, line)


def _first(words: tuple[re.Pattern[str], ...], line: str) -> str | None:
    return next((match[1] for word in words if (match := word.search(line))), None)
