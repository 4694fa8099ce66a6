"""An ECR repository for the images of jobs, on the nodes' side of the network and readable by their
role.

Which there are, and their data's fate: `registries` in the stack file. A sample image:
workloads/Dockerfile.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from trainyard.objects.iam.policies import lifecycle
from trainyard.plans.images import RegistryPlan
from trainyard.plans.stores import KEPT


class Registry(pulumi.ComponentResource):
    """A repository in which a tag is never moved to another image."""

    url: pulumi.Output[str]
    """Beginning of an image's name; after it comes `:tag`, or better `@sha256:…`."""

    def __init__(
        self, name: str, plan: RegistryPlan, *, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("trainyard:storage:Registry", name, None, opts)
        repository = aws.ecr.Repository(
            name,
            name=plan.name,
            image_tag_mutability="IMMUTABLE",
            image_scanning_configuration={"scan_on_push": True},
            # ECR keeps a repository that has images, and with it the whole destroy.
            force_delete=not plan.keep,
            tags=plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self, protect=plan.keep),
        )
        if plan.keep_images:
            aws.ecr.LifecyclePolicy(
                name,
                repository=repository.name,
                policy=lifecycle(plan.keep_images),
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.url = repository.repository_url
        self.register_outputs({"url": self.url, KEPT: plan.keep})
