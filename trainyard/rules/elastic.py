"""Errors and warnings about jobs whose number of nodes can change while they run.

Sources: training-operator v1.8.1 (pkg/controller.v1/pytorch/elastic.go, pytorchjob_controller.go), torch 2.15
(distributed/elastic/agent/server/api.py, rendezvous/c10d_rendezvous_backend.py), Karpenter 1.14.1
(pkg/utils/pod/scheduling.go, IsEvictable). What the operator does with the pods of nodes that leave:
tests/controllers/test_elastic.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.parts.parts import wanted_parts
from trainyard.problems import At, InputError, InputWarning
from trainyard.rules.jobs import controller_fix
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import ElasticConfig, JobConfig

ENOUGH = 10
"""Restarts that the warning proposes: nodes leave and come back several times."""


def elastic_errors(
    path: str, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputError]:
    """Every error of an elastic job."""
    path, wanted = f"{path}.elastic", job.elastic
    if wanted is None:
        return
    size = f"{wanted.min_nodes} to {wanted.max_nodes} nodes"
    if not job.pytorch_job:
        operator = "" if environment.training_operator else f", and {controller_fix('PyTorchJob')}"
        yield At(path).not_set(
            "in a TrainJob: no Trainer up to 2.3 implements it, because a JobSet cannot resize",
            got=size,
            instead=f"delete runtime, and write pytorch_job: {{}}{operator}",
        )
    elif job.pytorch_job.coordinator:
        yield At(path).not_set(
            "beside coordinator: an elastic PyTorchJob has no Master",
            got=size,
            instead="delete pytorch_job.coordinator",
        )
    if not wanted.min_nodes <= job.nodes <= wanted.max_nodes:
        yield At(path).must(
            "have nodes, the size at the start, between min_nodes and max_nodes",
            got=f"{size}, nodes: {job.nodes}",
            fix=_around(path, wanted, job.nodes),
        )


def _around(path: str, wanted: ElasticConfig, nodes: int) -> str:
    """The bound that the number of nodes exceeds, and the number within the bounds. `path`: of the bounds."""
    low = nodes < wanted.min_nodes
    bound, within = ("min_nodes", wanted.min_nodes) if low else ("max_nodes", wanted.max_nodes)
    job = path.removesuffix(".elastic").removesuffix(".pytorch_job")
    return f"write {bound}: {nodes} under {path}, or write nodes: {within} under {job}"


def elastic_warnings(
    path: str, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Losses of a node after which an elastic job does not go on with the nodes that it has."""
    if job.elastic is None or job.pytorch_job is None:
        return
    if not job.pytorch_job.restarts:
        yield At(f"{path}.pytorch_job.restarts").warning(
            "the first node that leaves ends this elastic job: torchrun starts the ranks of the other nodes"
            f" again only as often as `restarts` says, which is 0; write restarts: {ENOUGH}, and checkpoints"
        )
    pool, meet = environment.pools.get(job.pool), job.torchrun and job.torchrun.rendezvous
    is_spot = pool is not None and pool.capacity == "spot"
    if is_spot and not any(part.ends_reclaimed_pods for part, _ in wanted_parts(environment)):
        yield At(f"{path}.pool").warning(
            f"pool {job.pool} is spot, and two minutes before AWS takes a node back nobody tells its ranks, because"
            " Karpenter evicts no pod of a training: what they have not saved is lost with the node; write repair: {}"
            " under environment, which then ends that pod with SIGTERM"
        )
    if is_spot and not meet:
        yield At(f"{path}.elastic").warning(
            f"every node of pool {job.pool} is spot, also that of worker-0, which hosts the rendezvous: when"
            " AWS takes that node back, the other nodes stop, are paid for, and resume from the newest"
            " checkpoint when worker-0 has a node again. The loss of another node makes the job smaller. Name"
            " a pool on demand if no such stop is acceptable, or let the ranks meet at an etcd server"
            " (torchrun.rendezvous)"
        )
