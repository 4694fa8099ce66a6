"""What storage costs a month, where a dated price is known; never a neighbouring region's.

Sources: FSx for Lustre and EFS price pages for us-east-1, gathered 2026-11-20 (shared facts §5.1). Another region is
another row.
"""

from __future__ import annotations

AS_OF = "2026-11"

LUSTRE_GB_MONTH: dict[str, dict[str, float]] = {
    "us-east-1": {"SCRATCH_2": 0.140, "PERSISTENT_2-125": 0.145, "PERSISTENT_2-250": 0.210, "PERSISTENT_2-500": 0.340,
                  "PERSISTENT_2-1000": 0.600},
}
"""region → deployment and tier → USD for a provisioned GB and month."""


def lustre_per_month(region: str, deployment: str, tier: int | None, capacity_gib: int) -> float | None:
    """USD a month of a Lustre file system; None where no price of that region is known."""
    sku = deployment if tier is None else f"{deployment}-{tier}"
    price = LUSTRE_GB_MONTH.get(region, {}).get(sku)
    return None if price is None else price * capacity_gib
