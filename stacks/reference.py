"""Another environment, as its stack's outputs tell it. Whoever reads them reads its whole state."""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi.output import UNKNOWN

from trainyard.plans.identity import Identity


def contract_of(environment: str, me: Identity) -> pulumi.Output[Any]:
    """The contract in the outputs of an environment's stack; None where it is not deployed."""
    # The organization is the owner of the stack on Pulumi's own service, and the word "organization"
    # on every other backend.
    reference = pulumi.StackReference(f"{pulumi.get_organization()}/{me.project}/{environment}")
    return reference.get_output("contract")


def cluster_of(environment: str, me: Identity) -> dict[str, pulumi.Output[str]]:
    """Values by which the cluster of an environment is reached. Unknown in a preview before it is
    deployed, and refused in an update."""

    def known(contract: Any) -> Any:
        if contract:
            return contract["cluster"]
        if pulumi.runtime.is_dry_run():
            return UNKNOWN
        raise pulumi.RunError(
            f"environment {environment} is not deployed: run `pulumi up -s {environment}` first"
        )

    cluster = contract_of(environment, me).apply(known)
    return {key: cluster[key] for key in ("name", "endpoint", "certificate_authority")}
