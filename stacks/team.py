"""A team on an environment: its jobs and, where the environment does not list the team, a namespace
with claims. The environment does not change because of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi.output import UNKNOWN

from components.base.account import aws_provider
from components.cluster.cluster import ClusterCoordinates
from components.jobs.jobs import Jobs
from components.jobs.namespace import JobNamespace, Volume
from stacks.outputs import job_outputs, job_starts, schedule_outputs
from stacks.reference import contract_of
from trainyard.plan import TeamPlan
from trainyard.plans.jobs import JobNamespacePlan, JobPlan, SweepPlan
from trainyard.replacing.contracts import Comparison
from trainyard.rules.access import account_of

NOT_THERE = "couldn't find resource"
"""Message of the AWS provider about a parameter that does not exist."""
NOT_ALLOWED = "not authorized to perform: ssm:GetParameter"
"""Message of IAM about a role that may not read a parameter."""


Compare = Callable[[Mapping[str, Any]], Comparison]
"""Compares the deployed contract of the environment with that of the plan."""


def build(
    plan: TeamPlan,
    compare: Compare,
    *,
    deployed: pulumi.Output[Any] | None = None,
    prefix: str = "",
) -> dict[str, Any]:
    """Make the team's share; returns the stack's outputs. `deployed`: the contract of the environment, where
    the program has it already. `prefix`: of all names, in a program that makes several teams."""
    published = deployed or _read(plan, f"{prefix}aws")
    contract = published.apply(lambda deployed: _as_planned(deployed or {}, plan, compare))
    at = contract["cluster"]
    cluster = ClusterCoordinates(
        name=at["name"],
        arn=at["arn"],
        endpoint=at["endpoint"],
        certificate_authority=at["certificate_authority"],
        access=plan.access,
    )
    in_cluster = pulumi.ResourceOptions(providers=[cluster.provider(f"{prefix}cluster")])

    space = None if plan.parameter else _namespace(plan, contract, prefix, in_cluster)
    kubeconfig, claims = cluster.kubeconfig(), space.claims if space else {}
    if plan.jobs:
        Jobs(
            f"{prefix}jobs",
            _named(plan.jobs, prefix),
            identity=plan.identity,
            starts={f"{prefix}{key}": line for key, line in job_starts(plan).items()},
            namespace=space.namespace if space else plan.workspace.namespace,
            kubeconfig=kubeconfig,
            # The environment made the claims of a team that it lists.
            needs={
                f"{prefix}{key}": [claims[it] for it in job.stores] if space else []
                for key, job in plan.jobs.items()
            },
            opts=in_cluster,
        )
    return {
        "kubeconfig": kubeconfig,
        "namespace": plan.workspace.namespace,
        "jobs": job_outputs(plan.identity.stack, plan.jobs),
        **schedule_outputs(plan.jobs),
    }


def _named(jobs: Mapping[str, JobPlan], prefix: str) -> dict[str, JobPlan]:
    """The jobs with the prefix before each name, and before those that a job waits for."""

    def named(keys: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{prefix}{each}" for each in keys)

    def in_turn(sweep: SweepPlan | None) -> SweepPlan | None:
        return sweep and replace(sweep, earlier=named(sweep.earlier), others=named(sweep.others))

    return {
        f"{prefix}{key}": replace(job, after=named(job.after), sweep=in_turn(job.sweep))
        for key, job in jobs.items()
    }


def _read(plan: TeamPlan, provider: str) -> pulumi.Output[Any]:
    """The contract that the environment has published for this team. A team that is listed cannot
    read the environment's state, in which every other output stands too. `provider`: name of that of
    AWS."""
    if not plan.parameter:
        return contract_of(plan.environment, plan.identity)
    account = aws_provider(provider, plan.access)
    try:
        found = aws.ssm.get_parameter(
            name=plan.parameter, opts=pulumi.InvokeOptions(provider=account)
        )
    except Exception as error:  # the SDK has no type for what a provider answers
        if not pulumi.runtime.is_dry_run() or NOT_THERE not in str(error):
            raise unread(plan, str(error)) from None
        return pulumi.Output.from_input({})
    return pulumi.Output.from_input(json.loads(found.insecure_value))


def unread(plan: TeamPlan, told: str) -> pulumi.RunError:
    """The way out where the contract of a listed team cannot be read. `told`: what the AWS provider says."""
    fix = "read the message of AWS"
    if NOT_THERE in told:
        fix = f"run `pulumi up` of {plan.environment} first: it publishes the contract of the team"
    elif "credential" in told.lower():
        fix = "sign in to AWS: who runs this has no credentials, or they are over"
    elif NOT_ALLOWED in told:
        role = (plan.access.role_arn or "<role>").rpartition("/")[2]
        fix = (
            "give the role its one policy: `trainyard policy"
            f" {plan.identity.stack} --part deployer > policy.json`, then `aws iam put-role-policy"
            f" --role-name {role} --policy-name trainyard --policy-document file://policy.json`"
        )
    return pulumi.RunError(
        f"team.environment: must have a contract for this team, which the deployer can read in SSM"
        f" parameter {plan.parameter}; got {told}. Fix: {fix}"
    )


def _namespace(
    plan: TeamPlan,
    contract: pulumi.Output[Any],
    prefix: str,
    in_cluster: pulumi.ResourceOptions,
) -> JobNamespace:
    """The namespace of a team that the environment does not list."""
    return JobNamespace(
        f"{prefix}workspace",
        plan.workspace,
        volumes=_volumes(plan.workspace, contract),
        drivers={},
        at_once=True,
        opts=in_cluster,
    )


def _volumes(plan: JobNamespacePlan, contract: pulumi.Output[Any]) -> dict[str, Volume]:
    at = contract["volumes"]
    return {
        claim.store: Volume(
            handle=at[claim.store]["handle"],
            attributes={key: at[claim.store]["attributes"][key] for key in claim.driver.attributes},
        )
        for claim in plan.claims
    }


def _as_planned(deployed: dict[str, Any], plan: TeamPlan, compare: Compare) -> Any:
    """The deployed contract, if it keeps what this plan was made against; raises otherwise, in
    preview too.

    A preview before the environment exists goes on without what only AWS can say: a pull request
    needs no cluster.
    """
    if not deployed and pulumi.runtime.is_dry_run():
        return UNKNOWN
    found = compare(deployed)
    if found.refusal:
        raise pulumi.RunError(found.refusal)
    if found.note:
        pulumi.info(found.note)
    account = account_of(deployed["cluster"]["arn"])
    if setting := plan.access.refuses(account):
        raise pulumi.RunError(
            f"{setting}: must allow the account of environment {plan.environment}; got {account}."
            f" Fix: allow {account}, or name another environment"
        )
    return deployed
