"""Sentences in the log of a training script that say how far it is: a step is done, it has resumed
from a checkpoint, or has written one.

Sources, read on 2026-11-23: workloads/checkpoints.py; transformers `Trainer` and its
`ProgressCallback`; Lightning `checkpoint_connector`, `TQDMProgressBar` and `RichProgressBar`; DeepSpeed
`TorchCheckpointEngine` and `_report_progress`; Megatron-LM `checkpointing.py` and `training_log`;
torchtitan `checkpoint.py` and `metrics.py`; torchtune's recipes and checkpointers. Each begins a line
or stands behind the prefix of a logger.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

RESUMED = (
    re.compile(r"\bresumed from(?:: *| )(step \d+|\S+)", re.I),
    re.compile(r"\bLoading model from (\S+?)\.?$"),
    re.compile(r"\bRestored all states from the checkpoint(?: file)? at (\S+)"),
    re.compile(r"\[Torch\] Loaded checkpoint from (\S+?)\.?$"),
    re.compile(r"\bsuccessfully loaded checkpoint from (\S+)", re.I),
    re.compile(r"\bLoading the checkpoint from (\S+?)\.?$"),
)
"""Each has one group: what the script resumed from."""
SAVED = (
    re.compile(r"\bsaved(?: checkpoint)?(?:: *| )(step \d+|step-\S+)", re.I),
    re.compile(r"\bSaving model checkpoint to (\S+)"),
    re.compile(r"\[Torch\] Saved (\S+?)\.?$"),
    re.compile(r"\bsuccessfully saved checkpoint from iteration +(\d+)", re.I),
    re.compile(r"\bsaved checkpoint(?: to)?:? (\S+)", re.I),
    re.compile(r"\bcheckpoint of size .* saved to (\S+)"),
    re.compile(r"\bFinished saving the (checkpoint)\b"),
)
"""Each has one group: what the script wrote. transformers says it before it writes, the others after."""
STEPS = (
    re.compile(r"\biteration +(?P<step>\d+)/ *\d+ \|"),
    re.compile(r"\b\d+\|(?P<step>\d+)\|Loss:"),
    re.compile(r"\bEpoch (?P<epoch>\d+): +\d+%\|[^|]*\| (?P<step>\d+)/(?P<of>\d+) \["),
    re.compile(r"(?:^|\r) *\d+%\|[^|]*\| (?P<step>\d+)/(?P<of>\d+) \["),
    re.compile(r"\bEpoch (?P<epoch>\d+)/\d+ +[━╸╺ ]+(?P<step>\d+)/(?P<of>\d+) \d+:\d\d:\d\d"),
    re.compile(r"(?<!per )(?<!\w)(?:global_)?step[\"']?[:= ] *\[?(?P<step>\d+)(?![\d.]*\d)", re.I),
)
"""Each has the group `step`. `of`: steps of the bar of progress, of which the longest is that of the
training. `epoch`: the step counts from its beginning."""
LEARNED = re.compile(r"['\"]loss['\"]: ['\"]?\d")
"""transformers' Trainer without its bar says no step: {'loss': '6.13', 'epoch': '0.15'}, since its release 5 with
numbers in quotes."""


def resumed_from(line: str) -> str | None:
    """The checkpoint that the run resumed from, as a line of a log says; None where it says
    nothing."""
    return _first(RESUMED, line)


def saved(line: str) -> str | None:
    """The checkpoint that the run has written, as a line of a log says; None where it says
    nothing."""
    return _first(SAVED, line)


def nothing_done(lines: Iterable[str]) -> str | None:
    """The checkpoint from which a run resumed whose script has printed no step and saved nothing after that: a
    run before it had finished. None for other runs."""
    origin: str | None = None
    for line in lines:
        if said := resumed_from(line):
            origin = said
        elif origin and (saved(line) or _says_a_step(line)):
            return None
    return origin


def last_step(lines: Iterable[str]) -> str | None:
    """The last line that says a step, without blanks around it and cut to LINE_CHARACTERS; None without one."""
    said = [
        line for line in lines if _says_a_step(line) and not (saved(line) or resumed_from(line))
    ]
    return said[-1].rpartition("\r")[2].strip()[:LINE_CHARACTERS] if said else None


LONGEST = 4000
"""Characters of a line that expressions see, its last ones: a bar of progress is one line, however often it was drawn,
and some expressions take minutes for one of 100,000 characters."""
LINE_CHARACTERS = 120
"""Characters of the line of a step that are shown."""
STEP_LINES = 5000
"""Lines of the log of a complete run in which a step is looked for."""


def nothing_to_do(origin: str) -> str:
    """A sentence about such a run. `origin`: the checkpoint from which it resumed."""
    return (
        f"it had nothing to do: it resumed from {origin}, printed no step, saved nothing, and ended, because a run"
        " before it had finished. To train again, write another checkpoints.directory, or arguments with more steps"
    )


def figure_named(name: str) -> re.Pattern[str]:
    """The expression for a figure that a script prints under a name, its one group: `eval_loss: 0.51`,
    {'eval_loss': '0.51'}, loss=0.51, `loss 0.51`."""
    number = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    return re.compile(
        rf"(?<![\w/.-]){re.escape(name)}['\"]?(?: *[:=|] *| +)['\"]?{number}(?![\w.])"
    )


def as_text() -> dict[str, list[tuple[str, bool]]]:
    """All of them for a program that has no catalog: each expression, and whether capital letters
    count."""
    words = {"resumed": RESUMED, "saved": SAVED, "steps": STEPS}
    return {
        name: [(word.pattern, not word.flags & re.IGNORECASE) for word in each]
        for name, each in words.items()
    }


def _says_a_step(line: str) -> bool:
    return any(word.search(line[-LONGEST:]) for word in (*STEPS, LEARNED))


def _first(words: tuple[re.Pattern[str], ...], line: str) -> str | None:
    end = line[-LONGEST:]
    return next((match[1] for word in words if (match := word.search(end))), None)
