"""Statements about tags: a deployer tags what it creates, and changes the tags of its own stack.

The tag `trainyard:stack` decides what a deployer may delete. Whoever may give it to a VPC of somebody else may delete
that VPC.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.objects.iam.policies import Document

NEW = {
    "ec2": "ec2:CreateTags",
    "elasticfilesystem": "elasticfilesystem:TagResource",
}
"""Service that tells IAM, in the key CreateAction, which call creates what is tagged → the call that IAM asks about
(Service Authorization Reference, EC2 and EFS; user guides, supported-iam-actions-tagging and using-tags-efs)."""
RULES = "security-group-rule"
"""Kind of resource of EC2 that Terraform's provider tags after it has created it
(internal/service/ec2/vpc_security_group_ingress_rule.go). No policy asks for its tags."""
OWN = "aws:ResourceTag/trainyard:stack"
"""Condition key with the stack that has made something."""
CREATIONS = ("Allocate", "Create", "Run")
"""Beginnings of the names of calls that create something."""


def is_tagging(action: str) -> bool:
    """True of a call that gives tags or takes them away."""
    return action.partition(":")[2] in ("CreateTags", "DeleteTags", "TagResource", "UntagResource")


def tagging(writes: set[str], *, region: str, stack: str) -> Iterator[Document]:
    """Statements for the calls of `writes` that tag. Of services that name no CreateAction, such as FSx: whatever
    has no tag of another stack."""
    own = {OWN: stack}
    others = set[str]()
    for service in sorted({action.partition(":")[0] for action in writes if is_tagging(action)}):
        calls = sorted(
            each for each in writes if is_tagging(each) and each.startswith(f"{service}:")
        )
        if service not in NEW:
            others.update(calls)
            continue
        arn = f"arn:aws:{service}:{region}:*:"
        created = {"StringEquals": {f"{service}:CreateAction": _creations(writes, service)}}
        new = {"Action": [NEW[service]], "Resource": f"{arn}*", "Condition": created}
        yield {"Sid": "TagNew", **new}
        yield {
            "Sid": "TagOwn",
            "Action": calls,
            "Resource": f"{arn}*",
            "Condition": {"StringEquals": own},
        }
        if service == "ec2":
            yield {"Sid": "TagRules", "Action": calls, "Resource": f"{arn}{RULES}/*"}
    if others:
        services = sorted({action.partition(":")[0] for action in others})
        yield {
            "Sid": "TagNotOfOthers",
            "Action": sorted(others),
            "Resource": [f"arn:aws:{service}:{region}:*:*" for service in services],
            "Condition": {"StringEqualsIfExists": own},
        }


def _creations(writes: set[str], service: str) -> list[str]:
    """Names of the calls of a service in `writes` that create something."""
    names = (each.partition(":")[2] for each in writes if each.startswith(f"{service}:"))
    return sorted(each for each in names if each.startswith(CREATIONS) and each != "CreateTags")
