"""The program that gives back the nodes of half gangs, and what it may do in the cluster.

Rights and configuration: plans/gangs.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from components.program import Program, ProgramArgs
from plans.gangs import APP, MAIN, MAY, PORT, GangsPlan, settings


class Gangs(Program):
    """It looks at PyTorchJobs that their queues have started, and sends half gangs back."""

    def __init__(
        self,
        name: str,
        plan: GangsPlan,
        *,
        nodes: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`nodes`: that it runs on."""
        args = ProgramArgs(
            app=APP,
            container="gangs",
            image=plan.image,
            files=plan.files,
            main=MAIN,
            settings=settings(plan),
            port=PORT,
            may=MAY,
        )
        super().__init__("trainyard:queues:Gangs", name, args, nodes=nodes, opts=opts)
