"""Settings of the repair of broken nodes. Their plan: trainyard/parts/repair.py."""

from dataclasses import dataclass
from typing import Annotated

import pydantic


@dataclass(frozen=True, kw_only=True)
class RepairConfig:
    """Nodes of pools that replace themselves when they break: GPUs, links, kernel, container runtime
    and kubelet. Their gangs end at once and go on elsewhere. Write `{}` for the default."""

    nodes_an_hour: Annotated[int, pydantic.Field(ge=1, le=100, strict=True)] | None = None
    """Number of nodes of each pool that can be replaced within an hour. By default a fifth of the
    nodes that run, and one at least: more broken nodes have a common cause, and are left for you."""
    hung_minutes: Annotated[int, pydantic.Field(ge=1, strict=True)] | None = None
    """After so many minutes without a log line of any rank, while all its pods run, a run starts anew
    from its last checkpoint. By default such a run is only told. Write more than the longest step, save
    or start of any job of the environment takes, and let each job log its steps. A bar of progress is no line
    before it has drawn 16 KiB, about 250 steps: print a line with a newline now and then, or write more than
    300 steps take."""
