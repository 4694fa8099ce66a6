"""Policies of the endpoints of an existing VPC, as `trainyard check --live` judges them: a policy can keep nodes from
buckets that only AWS knows.

Sources: ECR user guide, vpc-endpoints, "Minimum Amazon S3 bucket permissions for Amazon ECR" (layers of images lie in a
bucket of AWS in the region); AL2023 user guide, repositories in the bucket al2023-repos-<region>-de612dc2; PrivateLink
guide, vpc-endpoints-access (the default policy lets everything through). A condition is not judged: what it lets
through may be enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainyard.existing.bucket_faults import BucketUse
from trainyard.existing.vpc_faults import AT, VpcFound
from trainyard.live.questions.network_questions import EndpointFound
from trainyard.objects.iam.read_policies import is_everybody, matches, statements_of
from trainyard.plans.documents import Document
from trainyard.plans.networks import ExistingNetworkPlan
from trainyard.problems import At, InputError, InputWarning

LAYERS = "arn:aws:s3:::prod-{region}-starport-layer-bucket/*"
PACKAGES = "arn:aws:s3:::al2023-repos-{region}-de612dc2/*"
READ, WRITE = "s3:GetObject", "s3:PutObject"
ACTIONS, RESOURCES = ("Action", "NotAction"), ("Resource", "NotResource")
"""Names of an element of a statement: what it is about, and what it is not about."""


@dataclass(frozen=True, kw_only=True)
class S3Needs:
    """Objects of S3 that nodes and pods of a stack need."""

    region: str
    client: bool
    """Nodes get the programs of a store's client."""
    buckets: Sequence[BucketUse]
    """Buckets that the stack file names and pods read."""


def s3_policy_findings(
    network: ExistingNetworkPlan, vpc: VpcFound | None, policies: Mapping[str, str], needs: S3Needs
) -> Iterator[InputError | InputWarning]:
    """Policies of gateway endpoints that keep nodes from what they need. `policies`: by the endpoint's id; as JSON."""
    if vpc and vpc.shared_by:
        return
    for id_, policy in policies.items():
        yield from _layers(network, id_, policy, LAYERS.format(region=needs.region))
        packages = PACKAGES.format(region=needs.region)
        if needs.client and lets(policy, READ, packages) is False:
            yield At(f"{AT}.vpc_id").warning(
                f"the policy of {id_} does not allow {READ} on {packages}: nodes get no lustre-client, and mount Lustre"
                " over TCP and without lctl. Have its owner add that"
            )
        for use in needs.buckets:
            calls = [READ, WRITE] if use.written else [READ]
            objects = f"arn:aws:s3:::{use.bucket}/*"
            if lacking := [call for call in calls if lets(policy, call, objects) is False]:
                yield At(use.path).warning(
                    f"the policy of {id_}, by which nodes reach S3, does not allow {' and '.join(lacking)} on"
                    f" {objects}: where the bucket is in {needs.region}, S3 refuses pods with 403. Have the"
                    " owner of the endpoint add that"
                )


def _layers(
    network: ExistingNetworkPlan, id_: str, policy: str, layers: str
) -> Iterator[InputError | InputWarning]:
    allowed = lets(policy, READ, layers)
    if allowed is False:
        yield At(f"{AT}.vpc_id").must(
            f"have a gateway endpoint for S3 that lets nodes pull images: {READ} on {layers}, in which ECR keeps"
            " layers",
            got=f"{id_} in {network.vpc_id}, whose policy does not allow it: no node becomes Ready",
            fix=f"have its owner add that to the policy, for Principal *, by `aws ec2 modify-vpc-endpoint"
            f" --vpc-endpoint-id {id_} --policy-document file://policy.json`",
        )
    elif allowed is None:
        yield At(f"{AT}.vpc_id").warning(
            f"the policy of {id_} has conditions, which nothing here judges: nodes need {READ} on {layers}, in"
            " which ECR keeps layers of images"
        )


def api_policy_findings(endpoints: Sequence[EndpointFound]) -> Iterator[InputWarning]:
    """Endpoints of APIs whose policy is not known to let every call through. `endpoints`: those that are called."""
    narrow = [one for one in endpoints if lets(one.policy, "*", "*") is not True]
    if narrow:
        named = ", ".join(f"{one.id} for {one.api}" for one in narrow)
        yield At(f"{AT}.endpoints").warning(
            f"the policies of {named} do not let every call through, and nothing here judges them: each must let"
            " nodes and controllers of this stack call its API"
        )


def lets(policy: str, action: str, resource: str) -> bool | None:
    """True where a policy lets everybody through; False where it lets nobody; None where a condition, or a named
    principal, decides. Without a policy it is AWS's, which lets everything through."""
    if not policy:
        return True
    about = [
        each
        for each in statements_of(policy)
        if _is_about(each, ACTIONS, action) and _is_about(each, RESOURCES, resource)
    ]
    permits, denials = (
        [_of_all(each) for each in about if each["Effect"] == effect]
        for effect in ("Allow", "Deny")
    )
    if not permits or any(denials):
        return False
    return True if any(permits) and not denials else None


def _is_about(statement: Document, names: tuple[str, str], value: str) -> bool:
    """True where an element of the statement matches."""
    for name, is_meant in zip(names, (True, False), strict=True):
        if name in statement:
            return matches(value, statement[name]) is is_meant
    return True


def _of_all(statement: Document) -> bool:
    """True of a statement about everybody, without a condition."""
    return is_everybody(statement.get("Principal")) and not statement.get("Condition")
