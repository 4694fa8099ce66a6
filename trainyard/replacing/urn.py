"""Parts of a resource's URN: `urn:pulumi:<stack>::<project>::<types of its parents and its
own>::<name>`."""


def types_of(urn: str) -> list[str]:
    """The types of its parents, from the outermost one, and its own as the last (pulumi 3.259,
    sdk/go/common/resource/urn/urn.go, New)."""
    return urn.split("::")[2].split("$")


def type_of(urn: str) -> str:
    """The type of the resource itself."""
    return types_of(urn)[-1]


def name_of(urn: str) -> str:
    """The name that the program gave it."""
    return urn.split("::", 3)[3]


def title_of(urn: str) -> str:
    """Kind and name for a person, such as "AccessEntry team-vision-deployer"."""
    return f"{type_of(urn).rpartition(':')[2]} {name_of(urn)}"


def stack_of(urn: str) -> str:
    """The name of its stack."""
    return urn.split("::", 1)[0].rpartition(":")[2]
