"""The program that replaces sick nodes, and what it may do in the cluster.

Settings: `repair` in the stack file. Rights and configuration: plans/repair.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from components.program import Program, ProgramArgs
from plans.repair import (
    APP,
    MAIN,
    MAY_REMEMBER,
    PORT,
    RepairPlan,
    settings,
)


class Repair(Program):
    """It looks at nodes, and replaces sick ones."""

    def __init__(
        self,
        name: str,
        plan: RepairPlan,
        *,
        nodes: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`nodes`: that it runs on."""
        args = ProgramArgs(
            app=APP,
            container="repair",
            image=plan.image,
            files=plan.files,
            main=MAIN,
            settings=settings(plan),
            port=PORT,
            may=plan.may,
            may_called="acts",
            may_remember=MAY_REMEMBER,
        )
        super().__init__("trainyard:nodes:Repair", name, args, nodes=nodes, opts=opts)
