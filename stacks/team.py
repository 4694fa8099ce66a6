"""A team on an environment: a namespace, its claims and its jobs. The environment does not change
because of it."""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi.output import UNKNOWN

from components.cluster import ClusterCoordinates
from components.job import Job, said
from components.namespace import JobNamespace, Volume
from plans.parts import JobNamespacePlan
from stacks.outputs import job_outputs, job_starts
from stacks.plan import TeamPlan
from stacks.rules.access import account_of


def build(plan: TeamPlan) -> dict[str, Any]:
    """Make the team's share; returns the stack's outputs."""
    # The organization is the owner of the stack on Pulumi's own service, and the word "organization"
    # on every other backend.
    environment = pulumi.StackReference(
        f"{pulumi.get_organization()}/{plan.identity.project}/{plan.environment}"
    )
    contract = environment.get_output("contract").apply(
        lambda deployed: _as_planned(deployed or {}, plan)
    )
    at = contract["cluster"]
    cluster = ClusterCoordinates(
        name=at["name"],
        arn=at["arn"],
        endpoint=at["endpoint"],
        certificate_authority=at["certificate_authority"],
        access=plan.access,
    )
    in_cluster = pulumi.ResourceOptions(providers=[cluster.provider("cluster")])

    workspace = JobNamespace(
        "workspace",
        plan.workspace,
        volumes=_volumes(plan.workspace, contract),
        drivers={},
        opts=in_cluster,
    )
    kubeconfig, said_before = cluster.kubeconfig(), said(job_starts(plan))
    for key, job in plan.jobs.items():
        Job(
            key,
            job,
            said_before=said_before,
            namespace=workspace.namespace,
            kubeconfig=kubeconfig,
            opts=in_cluster,
            needs=[workspace.claims[store] for store in job.stores],
        )
    return {
        "kubeconfig": kubeconfig,
        "namespace": plan.workspace.namespace,
        "jobs": job_outputs(plan.jobs),
    }


def _volumes(plan: JobNamespacePlan, contract: pulumi.Output[Any]) -> dict[str, Volume]:
    at = contract["volumes"]
    return {
        claim.store: Volume(
            handle=at[claim.store]["handle"],
            attributes={key: at[claim.store]["attributes"][key] for key in claim.driver.attributes},
        )
        for claim in plan.claims
    }


def _as_planned(deployed: dict[str, Any], plan: TeamPlan) -> Any:
    """The deployed contract, if it is the one this plan was made against; raises otherwise, in
    preview too.

    A preview before the environment exists goes on without what only AWS can say: a pull request
    needs no cluster.
    """
    if not deployed and pulumi.runtime.is_dry_run():
        return UNKNOWN
    if deployed.get("digest") != plan.contract["digest"]:
        raise pulumi.RunError(
            f"environment {plan.environment} is deployed from another stack file than the one in"
            f" this checkout; run `pulumi up -s {plan.environment}` first, or check out the commit"
            " it was made from"
        )
    account = account_of(deployed["cluster"]["arn"])
    if setting := plan.access.refuses(account):
        raise pulumi.RunError(
            f"{setting}: must allow the account of environment {plan.environment}; got {account}."
            f" Fix: allow {account}, or name another environment"
        )
    return deployed
