"""Own prices: what each contract with AWS takes off, and what it does not."""

from __future__ import annotations

from decimal import Decimal

from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.catalog.aws.quotes import quote

VIRGINIA = "us-east-1"
P5 = Decimal("55.04")
"""USD an hour of a p5.48xlarge in us-east-1."""
OWN = OwnPrices(
    discount_percent=Decimal(10),
    savings_plan_percent={"p5": Decimal(40)},
    support_percent=Decimal(3),
)


def test_without_a_discount_every_price_is_that_of_the_list() -> None:
    for service, sku in (("eks", "cluster"), ("ec2", "p5.48xlarge"), ("ec2-spot", "p5.48xlarge")):
        listed = quote(service, sku, VIRGINIA)
        assert LIST.quote(service, sku, VIRGINIA) == listed
        assert OwnPrices(support_percent=Decimal(3)).quote(service, sku, VIRGINIA) == listed
    assert not LIST.lower and not OwnPrices(support_percent=Decimal(3)).lower and OWN.lower


def test_a_private_pricing_agreement_lowers_the_price_of_each_service() -> None:
    for service, sku in (("eks", "cluster"), ("ebs", "gp3"), ("nat", "gb"), ("ec2", "m7i.xlarge")):
        listed, own = (each.price(service, sku, VIRGINIA) for each in (LIST, OWN))
        assert listed and own and own.usd == listed.usd * Decimal("0.9")
        assert (own.unit, own.as_of, own.source) == (listed.unit, listed.as_of, listed.source)


def test_a_savings_plan_lowers_the_price_on_demand_of_its_family_alone() -> None:
    """0.6 of the list price, and 0.9 of what is left."""
    for kind, share in (("p5.48xlarge", "0.54"), ("p5.4xlarge", "0.54"), ("p4d.24xlarge", "0.9")):
        listed, own = (each.price("ec2", kind, VIRGINIA) for each in (LIST, OWN))
        assert listed and own and own.usd == listed.usd * Decimal(share)


def test_a_savings_plan_lowers_neither_spot_nor_a_capacity_block() -> None:
    """The most that spot costs is the price on demand without a Savings Plan."""
    spot = OWN.quote("ec2-spot", "p5.48xlarge", VIRGINIA)
    assert spot.price is None and spot.ceiling and spot.ceiling.usd == P5 * Decimal("0.9")
    listed, own = (each.price("ec2-block", "p5.48xlarge", VIRGINIA) for each in (LIST, OWN))
    assert listed and own and own.usd == listed.usd * Decimal("0.9")


def test_a_guess_is_lowered_at_both_ends() -> None:
    listed, own = (each.quote("nat", "hour", "af-south-1").guess for each in (LIST, OWN))
    assert listed and own
    assert (own.usd, own.most_usd) == (
        listed.usd * Decimal("0.9"),
        listed.most_usd * Decimal("0.9"),
    )
    nothing = OWN.quote("fsx-lustre", "no such tier", VIRGINIA)
    assert (nothing.price, nothing.ceiling, nothing.guess) == (None, None, None)
