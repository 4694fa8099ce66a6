"""Answers of EC2 to a launch with DryRun, other than DryRunOperation: it refuses a type that the
zone does not sell. A dry run does not look at capacity and quotas.

Karpenter tries an EC2NodeClass by such a launch before the class becomes Ready. Nobody here has
seen EC2's answer in an account: karpenter-provider-aws#7844 and #7928 show that its dry run looks
at more than permissions.
"""

from __future__ import annotations

from collections.abc import Iterator

from rehearsal.aws import instances, launch_templates
from rehearsal.aws.operations import CHECKS, Call, Fields, Refused


def _check(call: Call) -> None:
    """Refused where no place that the call names sells the type; a fleet may name several."""
    refusals: list[Refused] = []
    for place in _places(call) if call["DryRun"] else ():
        subnet = instances.subnet_named(call.ec2, place)
        if subnet is None or not place.get("InstanceType"):
            return
        try:
            instances.check_sold(call.ec2, place["InstanceType"], subnet)
            return
        except Refused as refusal:
            refusals.append(refusal)
    if refusals:
        raise refusals[0]


def _places(call: Call) -> Iterator[Fields]:
    """Launch template data with what the call says instead, one for each place that it names."""
    given = {name: value for name, value in call.params.items() if value not in (None, [], {})}
    if call.action == "RunInstances":
        template = given.get("LaunchTemplate")
        yield (launch_templates.data(call.region, template) if template else {}) | given
    for config in given.get("LaunchTemplateConfigs", ()):
        data = launch_templates.data(call.region, config["LaunchTemplateSpecification"])
        yield from (data | override for override in config.get("Overrides") or [{}])


for _action in ("RunInstances", "CreateFleet"):
    CHECKS["ec2", _action].append(_check)
