"""Types of AWS that take tags, by the SDK that this program uses."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from keyword import iskeyword
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
    folder, _, name = rest.partition(":")[0].partition("/")
    return _files(f"{folder}_" if iskeyword(folder) else folder).get(_bare(name))


@cache
def _files(folder: str) -> dict[str, Path]:
    """Files of a folder of the SDK by their bare names. Where a capital begins a word, no rule
    says: `iPSet` is in ip_set.py, and `graphQLApi` in graph_ql_api.py."""
    found = find_spec("pulumi_aws")
    assert found is not None and found.submodule_search_locations, "pulumi_aws is not installed"
    files = Path(found.submodule_search_locations[0], folder).glob("*.py")
    return {_bare(file.stem): file for file in files}


def _bare(name: str) -> str:
    return name.replace("_", "").lower()
