"""`trainyard policy`: the IAM policies of whoever deploys or previews a stack.

They follow from the stack file, without the engine and without an account. What they allow:
trainyard/objects/deployer.py; which calls a resource needs: trainyard/catalog/aws/permissions.py.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace

from trainyard.catalog.aws.questions import (
    BUCKET_QUESTIONS,
    BUDGET_QUESTIONS,
    CLUSTER_QUESTIONS,
    COPY_QUESTIONS,
    DEFAULT_KEY_QUESTIONS,
    LOG_QUESTIONS,
    VPC_QUESTIONS,
)
from trainyard.catalog.aws_types.row import When
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.objects.deployer import (
    ExistingClusterScope,
    Scope,
    deployer_policies,
    preview_policies,
    team_policies,
)
from trainyard.objects.iam.boundary import boundary
from trainyard.objects.iam.encryption import key_policy
from trainyard.objects.iam.policies import Document
from trainyard.parts.parts import SERVICES, cost_tags, part_types
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.clusters import ExistingClusterPlan
from trainyard.plans.images import images_in, in_region, parts
from trainyard.plans.networks import ExistingNetworkPlan, has_flow_logs
from trainyard.reports.stack_file import report_on
from trainyard.settings.reading.reader import Reading
from trainyard.stores.kinds import plan_kind


def main(options: argparse.Namespace) -> int:
    """Print the policies of one stack as JSON; 1 where the stack file has errors, 2 where there is no
    file, or no such policy."""

    def report(_: Reading, plan: EnvironmentPlan | TeamPlan) -> int:
        if options.boundary:
            print(json.dumps(boundary(SERVICES), indent=2))
            return 0
        if options.key:
            return _print_key_policy(plan)
        found = policies(plan, preview=options.preview)
        if options.part is None:
            print(json.dumps(found, indent=2))
            return 0
        parts = {name.rpartition("-")[2]: document for name, document in found.items()}
        if options.part not in parts:
            there = ", ".join(parts) or "none"
            print(f"{options.stack}: no policy {options.part}; there are {there}")
            return 2
        print(json.dumps(parts[options.part], indent=2))
        return 0

    return report_on(options.stack, report)


def _print_key_policy(plan: EnvironmentPlan | TeamPlan) -> int:
    """Print the statements that the owner of the key adds to its policy; 2 where the stack file
    names no key."""
    key = plan.identity.kms_key_arn
    if key is None:
        print(f"{plan.identity.stack}: environment.kms_key_arn is not set")
        return 2
    print(json.dumps(key_policy(key, plan.identity.stack), indent=2))
    return 0


def policies(plan: EnvironmentPlan | TeamPlan, *, preview: bool = False) -> dict[str, Document]:
    """Name → document. A team's stack creates nothing in AWS: all its resources are in the cluster,
    which an access entry lets its role into. Where the environment lists the team, the stack reads
    one parameter."""
    if isinstance(plan, TeamPlan) and plan.parameter:
        reader = f"{plan.identity.stack}-{'preview' if preview else 'deployer'}"
        return team_policies(reader, plan.identity.region, plan.parameter)
    me = plan.identity
    scope = Scope(stack=me.stack, region=me.region, services=SERVICES)
    if isinstance(plan, EnvironmentPlan):
        kinds = [(plan_kind(store), store) for store in plan.stores.values()]
        linked = {name for kind, store in kinds for name in kind.linked_buckets(store)}
        own = {name for kind, store in kinds for name in kind.own_buckets(store)}
        scope = replace(
            scope,
            buckets=tuple(sorted(linked)),
            own_buckets=tuple(sorted(own)),
            questions=tuple(sorted(_questions(plan))),
            existing_cluster=_existing_cluster(plan),
            boundary=plan.identity.permissions_boundary,
            key=plan.identity.kms_key_arn,
            private_names=plan.network.endpoints is not None,
            flow_logs=has_flow_logs(plan.network),
            copies=_copies(plan),
            secrets=_secrets(plan),
        )
    make = preview_policies if preview else deployer_policies
    return make(resource_types(plan), scope)


def _secrets(plan: EnvironmentPlan) -> tuple[str, ...]:
    """Secrets that the environment's own jobs read."""
    return plan.job_pods.secrets if plan.job_pods else ()


def _copies(plan: EnvironmentPlan) -> tuple[str, ...]:
    """Repositories of ECR about which `trainyard check --live` asks. Of copies: account, and the first part of the
    name; of images of jobs: account and name."""
    copies = {each.copy for each in plan.copies}
    own = {
        image
        for job in plan.jobs.values()
        for image in images_in(job)
        if in_region(image, plan.access.region) and image not in copies
    }
    begins = {
        (name.registry, f"{name.repository.partition('/')[0]}/*") for name in map(parts, copies)
    }
    whole = {(name.registry, name.repository) for name in map(parts, own)}
    found = {(registry.partition(".")[0], names) for registry, names in begins | whole}
    return tuple(sorted(f"{account}:repository/{names}" for account, names in found))


def _questions(plan: EnvironmentPlan) -> set[str]:
    """Calls that ask about existing resources, such as a VPC."""
    stores = [(plan_kind(store), store) for store in plan.stores.values()]
    of_stores = {ask for kind, store in stores for ask in kind.questions(store)}
    pods = [*(team.pods for team in plan.teams.values()), plan.job_pods]
    asked = {
        VPC_QUESTIONS: not plan.own_network,
        CLUSTER_QUESTIONS: not plan.own_cluster,
        BUDGET_QUESTIONS: cost_tags(plan),
        LOG_QUESTIONS: plan.has_log_groups,
        COPY_QUESTIONS: plan.copies,
        DEFAULT_KEY_QUESTIONS: plan.identity.kms_key_arn is None,
        BUCKET_QUESTIONS: any(each and each.statements for each in pods),
    }
    return of_stores.union(*(calls for calls, needed in asked.items() if needed))


def _existing_cluster(plan: EnvironmentPlan) -> ExistingClusterScope | None:
    """The existing cluster, and what the stack writes there. None where the stack makes its cluster."""
    if not isinstance(plan.cluster, ExistingClusterPlan):
        return None
    return ExistingClusterScope(
        name=plan.cluster.name,
        add_ons=plan.cluster.made_add_ons,
        people=tuple(role.arn.rpartition("/")[2] for role in plan.cluster.roles),
    )


def resource_types(plan: EnvironmentPlan | TeamPlan) -> set[str]:
    """The types of the AWS provider that a stack has, those inside pulumi-eks's cluster among
    them."""
    if isinstance(plan, TeamPlan):
        return set()
    own = {kind for kind, row in AWS_TYPES.items() if _has(plan, row.when)}
    return {*own, *_from_settings(plan)}


def _has(plan: EnvironmentPlan, when: When) -> bool:
    """True where all types of that column are in the stack."""
    network = plan.network
    existing = isinstance(network, ExistingNetworkPlan)
    return {
        When.ALWAYS: True,
        When.OWN_CLUSTER: plan.own_cluster,
        When.OWN_NETWORK: not existing,
        When.WAY_OUT: not existing and bool(network.ways_out),
        When.ENDPOINTS: not existing or network.s3_endpoint or bool(network.endpoints),
        When.SETTING: False,
    }[when]


def _from_settings(plan: EnvironmentPlan) -> Iterator[str]:
    for store in plan.stores.values():
        yield from plan_kind(store).resource_types(store)
    yield from _of_logs(plan)
    if plan.registries:
        yield "aws:ecr/repository:Repository"
    if any(registry.keep_images for registry in plan.registries.values()):
        yield "aws:ecr/lifecyclePolicy:LifecyclePolicy"
    yield from part_types(plan)
    if plan.teams:
        yield "aws:ssm/parameter:Parameter"
    if plan.cluster.admins:
        yield "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
    if any(pool.own_placement_group for pool in plan.pools.values()):
        yield "aws:ec2/placementGroup:PlacementGroup"


def _of_logs(plan: EnvironmentPlan) -> Iterator[str]:
    if has_flow_logs(plan.network):
        yield "aws:ec2/flowLog:FlowLog"
    if plan.has_log_groups:
        yield "aws:cloudwatch/logGroup:LogGroup"
