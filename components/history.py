"""The program that records what each run took, and what it may do in the cluster.

Settings: `history` in the stack file. Rights and configuration: plans/history.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from components.program import Program, ProgramArgs
from plans.history import (
    APP,
    MAIN,
    MAY_REMEMBER,
    PORT,
    HistoryPlan,
    settings,
)


class History(Program):
    """It looks at jobs, pods and nodes, and records runs."""

    def __init__(
        self,
        name: str,
        plan: HistoryPlan,
        *,
        nodes: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`nodes`: that it runs on."""
        args = ProgramArgs(
            app=APP,
            container="history",
            image=plan.image,
            files=plan.files,
            main=MAIN,
            settings=settings(plan),
            port=PORT,
            may=plan.may,
            may_called="looks",
            may_remember=MAY_REMEMBER,
        )
        super().__init__("trainyard:jobs:History", name, args, nodes=nodes, opts=opts)
