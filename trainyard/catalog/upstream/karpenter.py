"""Types of ours of which a release of Karpenter has no price on demand in itself.

With `settings.isolatedVPC` it never learns another one, and launches no node on demand of a type without a price
(karpenter-provider-aws 1.14.1 and 1.15.0, pkg/providers/pricing/pricing.go, UpdateOnDemandPricing;
pkg/providers/instancetype/offering/base_resolver.go, hasPrice). Spot has prices that EC2 says, and a reservation needs
none.
"""

from __future__ import annotations

WITHOUT_PRICE: dict[str, tuple[str, ...]] = {"1.14.1": ("g7", "p5e"), "1.15.2": ("p5e",)}
"""Release → families that are not in its list, pkg/providers/pricing/zz_generated.pricing_aws.go, which is that of
us-east-1 for all regions."""


def has_price(release: str, instance_type: str) -> bool:
    """True where the release knows a price of the type, or where nobody knows the release."""
    return instance_type.partition(".")[0] not in WITHOUT_PRICE.get(release, ())
