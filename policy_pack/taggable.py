"""Types of AWS that take tags, by the SDK that this program uses."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def taggable(kind: str) -> bool:
    """True for a type that has tags, such as aws:ec2/vpc:Vpc. Its source is read and not imported:
    the package of EC2 alone loads for a second."""
    source = source_of(kind)
    return source is not None and "def tags_all(" in source.read_text()


def source_of(kind: str) -> Path | None:
    """The SDK's file about a type; None for what is no resource of AWS."""
    package, _, rest = kind.partition(":")
    if package != "aws":
        return None
    place = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", rest.partition(":")[0]).lower()
    found = find_spec("pulumi_aws")
    assert found is not None and found.submodule_search_locations, "pulumi_aws is not installed"
    file = Path(found.submodule_search_locations[0], f"{place}.py")
    return file if file.is_file() else None
