"""Types of the SDK that take tags, all of them."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from policy_pack.taggable import source_of, taggable

TYPE = re.compile(r"\.__init__\(\s*'(aws:[^']+)'")
"""Where a class of the SDK tells the engine its type."""


def test_every_type_of_the_sdk_is_found_and_known_to_take_tags_or_not() -> None:
    sdk = find_spec("pulumi_aws")
    assert sdk is not None and sdk.submodule_search_locations
    with_tags = set()
    for file in Path(sdk.submodule_search_locations[0]).rglob("*.py"):
        for kind in TYPE.findall(text := file.read_text()):
            assert source_of(kind) == file
            with_tags |= {kind} if "def tags_all(" in text else set()
    assert {
        "aws:ec2/vpc:Vpc",
        "aws:lambda/function:Function",
        "aws:guardduty/iPSet:IPSet",
    } < with_tags
    assert len(with_tags) > 800 and all(map(taggable, with_tags))
    assert not taggable("aws:lambda/alias:Alias") and source_of("aws:lambda/none:None") is None
