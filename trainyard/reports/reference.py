"""The reference of the stack file: every setting with its type, default and sentence.

Everything on the page comes from the types in trainyard/settings/, by way of the JSON schema:
`trainyard schema --reference > docs/stack-file.md`; a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from trainyard.catalog import versions
from trainyard.objects.iam.encryption import KEY_ARN
from trainyard.objects.iam.secrets import NAMES, PREFIXES
from trainyard.settings import stores
from trainyard.settings.aws import AwsConfig
from trainyard.settings.environment import CHARTS, MIRROR, REPLACEABLE
from trainyard.settings.reading.reader import json_schema

Schema = dict[str, Any]

HEAD = """# The stack file

One file, `Pulumi.<stack>.yaml`, describes one stack. Below `config:` it has `aws:region`, other settings of the AWS
account (`aws:…`), and exactly one of `trainyard:environment` and `trainyard:team`.

- You can leave out every setting that is not marked as required. Where the default is empty, nothing is set.
- An unknown setting is an error. `trainyard check` names it, with the nearest setting that exists.
- A section cannot be empty: `metrics: {}` turns metrics on, with the defaults of their settings.
- Text that Pulumi reads as a number or a time needs quotes: `"1e-3"`, `"1.30"`, `"2027-01-04"`. `trainyard check` names
  each such place.
- Units are part of the names: `capacity_gib` is in GiB, `wait_minutes` in minutes.
- `<name>` is a name of your choice: lower-case letters, digits and dashes, starting with a letter, at most 32
  characters.
- Examples are in the [README](../README.md#the-stack-file) and in [Jobs](jobs.md). What the words mean is in the
  [glossary](glossary.md).

Editors complete settings and show these sentences with [stack.schema.json](stack.schema.json).
"""
FOOT = """
Made by `trainyard schema --reference > docs/stack-file.md` from trainyard/settings/; a test compares.
"""
ACCOUNT = " ".join((AwsConfig.__doc__ or "").split())
UNITS = {
    "_mbps_per_tib": "MB/s for each TiB",
    "_gib": "GiB",
    "_minutes": "minutes",
    "_hours": "hours",
    "_days": "days",
    "_percent": "percent",
    "_billion": "billions",
    "bytes_per_parameter": "bytes",
}
"""End of a setting's name → its unit."""
PATTERNS = {
    r"^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$": "name",
    r"^arn:aws[a-z-]*:iam::\d{12}:role/(.+/)?[A-Za-z0-9_+=,.@-]{1,64}$": "ARN of a role",
    r"^arn:aws[a-z-]*:iam::(\d{12}|aws):policy/.+$": "ARN of a policy",
    r"^\d{12}$": "account ID",
    r"^[a-z0-9][-._:/a-z0-9]*/$": "beginning of image names",
    r"^s3://[a-z0-9][-.a-z0-9]{1,61}[a-z0-9]/([-!_.'()/A-Za-z0-9]+/)?$": "part of an S3 bucket",
    KEY_ARN: "ARN of a KMS key",
    NAMES: "name or ARN of a secret",
    PREFIXES: "name or ARN of secrets",
    REPLACEABLE: "<section>.<name>",
    CHARTS: "folder, or oci:// and a beginning of charts",
    MIRROR: "registry of ECR, / and a beginning of repositories",
    r"^cr-[0-9a-f]{8,17}$": "cr-…",
    r"^[0-9A-Za-z][-_0-9A-Za-z]{0,99}$": "name of an EKS cluster",
    r"^vpc-[0-9a-f]{8,17}$": "vpc-…",
    r"^subnet-[0-9a-f]{8,17}$": "subnet-…",
    stores.FILE_SYSTEM: "fs-…",
    stores.BACKUP: "backup-…",
    stores.WINDOW: "day of the week and time",
    r"^1\.\d\d\.\d+-20\d{6}$": versions.KUBERNETES[versions.DEFAULT_KUBERNETES].system_nodes,
    r"^\d+[hms](\d+[ms])?(\d+s)?$": "length of time",
    r"^/[^:]+$": "absolute path",
    r"^[^/].*[^/]$|^[^/]$": "relative path",
    r"^[^:/\s]+:\d+$": "host:port",
    r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$": "name of a Kubernetes object",
    r"^[-._a-zA-Z0-9]+$": "key of a Secret",
}
"""Pattern of a text → what a text of that pattern is called."""
TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
}
BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
}


MORE = {
    "ExistingNetworkConfig": " with vpc_id",
    "ManagedSecret": " with secrets_manager",
    "ManifestConfig": " with manifest",
}
"""Type → what tells its section from that of another type at the same path."""
Places = dict[str, list[str]]
"""Name of each type → the paths of the settings that have it, in the order of the file."""


def page() -> str:
    """The whole page."""
    schema = json_schema()
    return HEAD + "\n".join(_sections(schema)) + FOOT


def sentence(name: str, value: Schema, required: list[str], schema: Schema) -> str:
    """One setting in words, for whoever reads no table: its meaning, its values and its default."""
    default = "" if name in required else _default(name, value, required)
    known = [
        *([] if "$ref" in json.dumps(value) else [f"Value: {_kind(name, value, {})}."]),
        *([f"Default: {default}."] if default else []),
    ]
    return " ".join([_meaning(value, schema), *known])


def _sections(schema: Schema) -> Iterator[str]:
    """One section for each type, in the order in which a reader of the file meets them."""
    config = schema["properties"]["config"]
    account = {key: each for key, each in config["properties"].items() if key.startswith("aws:")}
    yield "\n## The AWS account\n"
    yield f"These settings stand directly below `config:`. {ACCOUNT}\n"
    yield from _table(account, config["required"], schema)
    places = _places(schema)
    for name, paths in places.items():
        found = schema["$defs"][name]
        yield f"\n## `{paths[0]}`\n"
        yield found["description"]
        if len(paths) > 1:
            yield f"\nAlso at {', '.join(f'`{path}`' for path in paths[1:])}."
        if found.get("properties"):
            yield ""
            yield from _table(found["properties"], found.get("required", []), schema)


def _places(schema: Schema) -> Places:
    found: Places = {}

    def walk(path: str, value: Schema) -> None:
        for name, inside in _references(value):
            here = path + inside + MORE.get(name, "")
            found.setdefault(name, []).append(here)
            for key, each in schema["$defs"][name].get("properties", {}).items():
                walk(f"{here}.{key}", each)

    for key, value in schema["properties"]["config"]["properties"].items():
        walk(key.removeprefix("trainyard:"), value)
    return found


def _references(value: Schema, inside: str = "") -> Iterator[tuple[str, str]]:
    """The types that a setting refers to, each with what follows the setting's path."""
    if "$ref" in value:
        yield _type(value), inside
    for each in (*value.get("anyOf", ()), *value.get("oneOf", ())):
        yield from _references(each, inside)
    if "items" in value:
        yield from _references(value["items"], f"{inside}[]")
    for each in _values(value):
        yield from _references(each, f"{inside}.<name>")


def _values(value: Schema) -> list[Schema]:
    """Schemas of a map's entries; empty for anything else."""
    more = value.get("additionalProperties")
    return [*value.get("patternProperties", {}).values(), *([more] if more else [])]


def _table(settings: Schema, required: list[str], schema: Schema) -> Iterator[str]:
    yield "| setting | value | default | meaning |"
    yield "|---|---|---|---|"
    places = _places(schema)
    for name, value in settings.items():
        row = (
            f"`{name}`",
            _kind(name, value, places),
            _default(name, value, required),
            _meaning(value, schema),
        )
        yield f"| {' | '.join(row)} |"


def _kind(name: str, value: Schema, places: Places) -> str:
    """Kind of a setting's value, with its unit and its bounds."""
    unit = next((f" ({unit})" for end, unit in UNITS.items() if name.endswith(end)), "")
    bounds = {key: part[key] for part in _parts(value) for key in BOUNDS if key in part}
    if {"minimum", "maximum"} <= bounds.keys():
        limits = [f"{bounds['minimum']:,} to {bounds['maximum']:,}"]
    else:
        limits = [BOUNDS[key].format(f"{bound:,}") for key, bound in bounds.items()]
    return ", ".join([f"{_named(value, places)}{unit}", *limits])


def _named(value: Schema, places: Places) -> str:
    """The words for a type: of a list and of a map those of what it holds."""
    if len(parts := _parts(value)) > 1:
        return " or ".join(_named(part, places) for part in parts)
    [part] = parts
    if "$ref" in part:
        return f"[settings](#{_anchor(places[_type(part)][0])})"
    if "enum" in part or "const" in part:
        *first, last = [f"`{choice}`" for choice in part.get("enum", [part.get("const")])]
        return f"{', '.join(first)} or {last}" if first else last
    if part["type"] == "array":
        return f"list, each entry: {_named(part['items'], places)}"
    if part["type"] == "object":
        [held] = _values(part)
        return f"map, each entry: {_named(held, places)}"
    if part.get("format") == "date-time":
        return "time"
    return PATTERNS[part["pattern"]] if "pattern" in part else TYPES[part["type"]]


def _parts(value: Schema) -> list[Schema]:
    """Schemas that a setting may have, other than left out."""
    parts = value.get("anyOf") or value.get("oneOf") or [value]
    return [part for part in parts if part.get("type") != "null"]


def _type(reference: Schema) -> str:
    return reference["$ref"].rpartition("/")[2]


def _anchor(path: str) -> str:
    """Anchor that GitHub makes of a heading."""
    kept = "".join(letter for letter in path.lower() if letter.isalnum() or letter in "-_ ")
    return kept.replace(" ", "-")


def _default(name: str, value: Schema, required: list[str]) -> str:
    if name in required:
        return "**required**"
    default = value.get("default")
    return f"`{json.dumps(default)}`".replace('"', "") if default not in (None, []) else ""


def _meaning(value: Schema, schema: Schema) -> str:
    """The setting's own sentence; of settings without one the first sentence of their type."""
    if "description" in value:
        return value["description"]
    whole = schema["$defs"][_type(_parts(value)[0])]["description"]
    return f"{whole.partition('. ')[0].rstrip('.')}."
