"""One training run by the training-operator.

What it runs: `jobs` in the stack file. What the object says: components/pytorch_objects.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from components.run import RunPlan, run


class PyTorchJob(pulumi.ComponentResource):
    """A PyTorchJob that is started by a changed identity, and by nothing else."""

    def __init__(self, name: str, plan: RunPlan, *, namespace: pulumi.Input[str],
                 needs: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("trainyard:jobs:PyTorchJob", name, None, opts)
        run(self, name, plan, api_version="kubeflow.org/v1", kind="PyTorchJob", namespace=namespace, needs=needs)
        self.register_outputs({})
