"""Guesses at prices: a range from the regions that are known, and right where it can be tried."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

from trainyard.catalog.aws.prices import on_demand, price, services
from trainyard.catalog.aws.quotes import LEAST, MOST, guess, guess_from, quote


def test_nine_of_ten_known_prices_lie_within_the_guess_of_the_other_regions() -> None:
    by_sku: dict[tuple[str, str], list[Decimal]] = defaultdict(list)
    for (service, sku, _), found in services().items():
        by_sku[service, sku].append(found.usd)
    tried = within = 0
    for usd in by_sku.values():
        for place, left_out in enumerate(usd if len(usd) > 1 else ()):
            bounds = guess_from([*usd[:place], *usd[place + 1 :]], "hour")
            tried += 1
            within += bounds.usd <= left_out <= bounds.most_usd
    assert tried > 90 and within / tried >= 0.9


def test_nineteen_of_twenty_instances_lie_within_the_guess_of_the_other_regions() -> None:
    by_type: dict[str, list[Decimal]] = defaultdict(list)
    for each in on_demand():
        for (kind, _), usd in each.prices.items():
            by_type[kind].append(usd)
    cases = [
        (usd, guess_from([*every[:place], *every[place + 1 :]], "hour"))
        for every in by_type.values()
        for place, usd in enumerate(every if len(every) > 1 else ())
    ]
    right = sum(bounds.usd <= usd <= bounds.most_usd for usd, bounds in cases)
    assert len(cases) > 500 and right / len(cases) >= 0.95


def test_a_known_price_has_no_guess_and_what_nobody_knows_has_none_either() -> None:
    assert guess("eks", "cluster", "us-east-1") is None
    assert guess("efs", "archive", "us-east-1") is None
    assert guess("ec2", "p5.48xlarge", "us-east-1") is None


def test_a_guess_goes_from_the_cheapest_region_to_the_dearest_and_beyond() -> None:
    known = [
        found.usd
        for service, sku, region in services()
        if (service, sku) == ("nat", "hour") and (found := price(service, sku, region))
    ]
    found = guess("nat", "hour", "af-south-1")
    assert found and (found.usd, found.most_usd) == (LEAST * min(known), MOST * max(known))
    assert found.unit == "hour"
    block = guess("ec2-block", "p5.48xlarge", "ap-northeast-1")
    assert block and block.usd < Decimal("34.608") < block.most_usd
    osaka = guess("ec2", "g6e.48xlarge", "ap-northeast-3")
    assert osaka and osaka.usd < Decimal("30.13118") < osaka.most_usd and osaka.unit == "hour"


def test_what_stands_in_place_of_a_price_is_a_ceiling_or_a_guess_and_never_both() -> None:
    known = quote("nat", "hour", "us-east-1")
    assert known.price and known.ceiling is None and known.guess is None
    spot = quote("ec2-spot", "p5.48xlarge", "us-east-1")
    assert spot.price is None and spot.guess is None
    assert spot.ceiling == price("ec2", "p5.48xlarge", "us-east-1")
    guessed = quote("ec2-spot", "g6e.48xlarge", "ap-northeast-3")
    assert guessed.ceiling is None and guessed.guess
    nothing = quote("fsx-lustre", "no such tier", "us-east-1")
    assert (nothing.price, nothing.ceiling, nothing.guess) == (None, None, None)
