"""Parts of a resource's URN: `urn:pulumi:<stack>::<project>::<types of its parents and its
own>::<name>`."""


def type_of(urn: str) -> str:
    """The type of the resource itself."""
    return urn.split("::")[2].rpartition("$")[2]


def name_of(urn: str) -> str:
    """The name that the program gave it."""
    return urn.split("::", 3)[3]


def title_of(urn: str) -> str:
    """Kind and name for a person, such as "AccessEntry team-vision-deployer"."""
    return f"{type_of(urn).rpartition(':')[2]} {name_of(urn)}"


def stack_of(urn: str) -> str:
    """The name of its stack."""
    return urn.split("::", 1)[0].rpartition(":")[2]
