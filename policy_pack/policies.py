"""The policies: encrypted, private, tagged, least privilege, allowed images, a budget.

They look at what the engine is about to create, so they also hold for whatever somebody adds to this
program. Their sources: AWS Foundational Security Best Practices of Security Hub (S3.1, EKS.1, EC2.8,
EC2.9, EC2.19, EC2.25, EFS.1, IAM.1, ECR.1) and, for what Karpenter and Kubernetes launch, the EKS best
practices guide.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from policy_pack.budget import BudgetRule
from policy_pack.images import allowed_images
from policy_pack.keys import buckets_own_key, encrypted, own_key
from policy_pack.kinds import (
    BUCKET,
    BUCKET_BLOCK,
    CLUSTER,
    INSTANCES,
    NODE_CLASS,
    REPOSITORY,
    TEMPLATE,
)
from policy_pack.reached import no_public_ingress, private
from policy_pack.resource import Config, Resource, Rule, as_list
from policy_pack.rights import least_privilege
from policy_pack.taggable import taggable
from trainyard.catalog.aws_types.table import AWS_TYPES

STORES = {kind for kind, row in AWS_TYPES.items() if row.holds_data}


def metadata_by_token(resource: Resource, _: Config) -> Iterator[str]:
    """Nobody must get a node's role from IMDS by one request, and no pod at all."""
    if resource.type in (TEMPLATE, *INSTANCES):
        options = resource.part("metadataOptions") or {}
    elif resource.type == NODE_CLASS:
        options = resource.part("spec", "metadataOptions") or {}
    else:
        return
    if options.get("httpTokens") != "required":
        yield "must require a token for instance metadata (httpTokens: required)"
    runs_pods = resource.type not in INSTANCES
    if runs_pods and options.get("httpPutResponseHopLimit") != 1:
        yield "must keep instance metadata from pods (httpPutResponseHopLimit: 1)"


def tagged(resource: Resource, config: Config) -> Iterator[str]:
    """Bills and audits find a resource by its tags: what the stack makes and what Karpenter
    launches."""
    if taggable(resource.type):
        groups = {"its tags": {**resource.default_tags, **(resource.part("tags") or {})}}
    elif resource.type == NODE_CLASS:
        groups = {"the tags of its nodes": resource.part("spec", "tags") or {}}
    else:
        return
    for each in as_list(resource.part("tagSpecifications")):
        groups[f"the tags of each {each.get('resourceType')}"] = each.get("tags") or {}
    for where, tags in groups.items():
        if missing := [key for key in config["required"] if key not in tags]:
            yield f"must have {', '.join(missing)} among {where}"


def audited(resource: Resource, _: Config) -> Iterator[str]:
    """The control plane writes an audit log."""
    if resource.type == CLUSTER:
        for log in ("audit", "authenticator"):
            if log not in as_list(resource.part("enabledClusterLogTypes")):
                yield f"must write the log {log} of the control plane"


def stores_protected(resource: Resource, _: Config) -> Iterator[str]:
    """`pulumi destroy` must not delete data."""
    if resource.type in STORES and not resource.protect:
        yield "must be protected: `pulumi destroy` deletes it with its data"


def scanned(resource: Resource, _: Config) -> Iterator[str]:
    if resource.type != REPOSITORY:
        return
    if not (resource.part("imageScanningConfiguration") or {}).get("scanOnPush"):
        yield "must scan images when they are pushed"


def buckets_blocked(resources: list[Resource], _: Config) -> Iterator[tuple[str, str]]:
    """A bucket without its BucketPublicAccessBlock is as private as its account."""
    blocked = {urn for one in resources if one.type == BUCKET_BLOCK for urn in one.needs}
    for one in resources:
        if one.type == BUCKET and one.urn not in blocked:
            yield one.urn, "must have a BucketPublicAccessBlock"


def _texts(*example: str) -> dict[str, Any]:
    """JSON schema of a list of texts. An empty text would be the beginning of everything."""
    item = {"type": "string", "pattern": r"\S"}
    return {"type": "array", "items": item, "minItems": 1, "examples": [[*example]]}


OWN_KEYS = {"keys": _texts("arn:aws:kms:*:123456789012:key/")}
"""Beginnings of the ARNs of the company's keys."""
REQUIRED = ["trainyard:project", "trainyard:stack"]
RULES = (
    Rule(
        name="encrypted",
        description="Disks of nodes and file systems are encrypted at rest.",
        fix="encrypt what was added: this program encrypts all that it makes itself",
        check=encrypted,
    ),
    Rule(
        name="private",
        description="No bucket, node, API server or Service is open to strangers.",
        fix="set environment.cluster.public_access_cidrs to your own ranges, or endpoint: private",
        check=private,
    ),
    Rule(
        name="buckets-blocked",
        description="Every bucket has a BucketPublicAccessBlock.",
        fix="add one, as environment.storage.<name>.s3 does for each bucket that it creates",
        stack_check=buckets_blocked,
    ),
    Rule(
        name="no-public-ingress",
        description="No security group lets the whole internet in.",
        fix="name a security group or your own range as the source",
        check=no_public_ingress,
    ),
    Rule(
        name="metadata-by-token",
        description="Instance metadata needs a token and is out of the reach of pods.",
        fix="set it for what was added: this program sets both for all of its own nodes",
        check=metadata_by_token,
    ),
    Rule(
        name="tagged",
        description="Every taggable resource has the required tags.",
        fix="set environment.tags: {<key>: <value>}, or aws:defaultTags",
        check=tagged,
        config={"required": {**_texts(*REQUIRED), "default": REQUIRED}},
    ),
    Rule(
        name="least-privilege",
        description="No policy allows every action, everybody, or changes of every resource.",
        fix="name the actions and the resources, or add a condition",
        check=least_privilege,
    ),
    Rule(
        name="audited",
        description="The control plane writes its logs audit and authenticator.",
        fix="set environment.cluster.logs: [audit, authenticator]",
        check=audited,
    ),
    Rule(
        name="scanned",
        description="ECR scans images when they are pushed.",
        fix="set scanOnPush, or let environment.registries make the repository",
        check=scanned,
    ),
    Rule(
        name="stores-protected",
        description="Data stores must be protected against `pulumi destroy`.",
        fix="set environment.storage.<name>.data: keep",
        check=stores_protected,
        advisory=True,
    ),
    Rule(
        name="images-from-allowed-registries",
        description="Images come from allowed registries.",
        fix="push the image to a repository of environment.registries, and name it",
        check=allowed_images,
        config={"registries": _texts("123456789012.dkr.ecr.*.amazonaws.com/")},
    ),
    Rule(
        name="within-budget",
        description="All pools together, when they are full, stay within a budget.",
        fix="lower environment.pools.<name>.max_nodes, or limits.nodes of a pool that was added",
        check=BudgetRule(),
        config={"max_usd_per_hour": {"type": "number", "exclusiveMinimum": 0, "examples": [400]}},
    ),
    Rule(
        name="own-key",
        description="What a stack stores is encrypted with a KMS key of the company.",
        fix="set environment.kms_key_arn to the ARN of a key of the company",
        check=own_key,
        config=OWN_KEYS,
    ),
    Rule(
        name="buckets-own-key",
        description="Every bucket names the key of its objects.",
        fix="set environment.kms_key_arn, which names the key of each bucket that the stack creates",
        stack_check=buckets_own_key,
        config=OWN_KEYS,
    ),
)
