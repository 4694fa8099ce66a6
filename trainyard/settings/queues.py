"""Settings of queues. Their plan: trainyard/derive/queues.py. Settings of a team: team_entry.py."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic

from trainyard.objects.queues.queues import Preemption
from trainyard.settings.aws import RoleArn
from trainyard.settings.job import Name


@dataclass(frozen=True, kw_only=True)
class QueuesConfig:
    """Queues for the jobs of teams: a job starts when all its nodes are free for it, and waits until
    then. Kueue is installed for it. Write `{}` for the defaults."""

    preemption: Preemption = "urgency_and_guarantees"
    """Running jobs that are stopped for a waiting one. A stopped job waits again, and then resumes
    from its last checkpoint. `urgency_and_guarantees`: jobs of the same team with a lower `urgency`, and
    where another team wants its guaranteed nodes back, jobs of teams that have more than their own
    guarantee, the least urgent first. `guarantees`: the latter only. `never`: none, and a team waits for
    its guaranteed nodes until the jobs on them have ended."""
    fair_sharing: Annotated[bool, pydantic.Field(strict=True)] = False
    """`true`: the team that has borrowed the least goes first to nodes that are nobody's guarantee, and
    unless `preemption` is `never`, jobs of teams that have borrowed more are stopped for it.
    By default the job with the highest `urgency` goes first, then the oldest. Either way a job that fits
    passes a larger one for which too few nodes are free."""
    topology: Literal["preferred"] | None = None
    """`preferred`: the nodes of a TrainJob are chosen from one part of AWS's network where so many are
    free there, else from neighbouring parts. All pools with GPUs must have `replicas`, of instance types
    for which EC2 names the parts. It cannot be taken back while `queues` exist. By default any free
    nodes are taken."""
    workers: tuple[Name, ...] = ()
    """Environments in whose clusters the jobs of teams run: each job is sent to all of them, and runs in
    the first one that starts it. Each of them has a stack file in this checkout, with the same teams,
    pools and runtimes, and `queues.manager`. The pools with GPUs of this environment then say how many
    nodes its workers have together, and launch none. Requires Trainer 2.3.0. By default the jobs run in
    this cluster."""
    manager: RoleArn | None = None
    """Role with which another environment hands the jobs of its teams to this one: the output
    `queues_role` of that environment. By default nobody from outside enters the queues."""
