"""A ValidatingAdmissionPolicy with its binding, which have one name. What they say: trainyard/objects/jobs/one_run.py,
trainyard/objects/teams/team_admission.py and trainyard/objects/teams/queue_admission.py.
"""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes as k8s


def admission_policy(
    parent: pulumi.Resource, name: str, called: str, *, spec: Any, binding: Any
) -> pulumi.Resource:
    """Make both; returns the binding, without which the policy judges nothing. `called`: their name in
    the cluster."""
    policy = k8s.admissionregistration.v1.ValidatingAdmissionPolicy(
        name,
        metadata={"name": called},
        spec=spec,
        opts=pulumi.ResourceOptions(parent=parent),
    )
    return k8s.admissionregistration.v1.ValidatingAdmissionPolicyBinding(
        name,
        metadata={"name": called},
        spec=binding,
        # The binding names the policy; without the policy it does nothing.
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[policy]),
    )
