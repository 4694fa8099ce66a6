"""Secrets that stand in a file by mistake: found before anything is printed, and withheld from all
that follows.

`withheld` replaces each secret by HIDDEN, so that no message, plan or state can repeat it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.problems import At, InputError
from trainyard.settings.aws import KEYS
from trainyard.settings.reading.secrets.names import (
    OF_LOGIN,
    Context,
    assigned,
    in_address,
    is_placeholder,
    is_secret,
    looks_secret,
)
from trainyard.settings.reading.secrets.tokens import KINDS

HIDDEN = "hidden-secret"
"""Text that stands in the place of a secret."""
PRIVATE_KEY = re.compile(
    r"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[^-]{0,20000}(?:-----END[ A-Z0-9_-]{0,100}-----)?)"
)
TOKEN = re.compile(
    # The look behind stands once, before all: most places of a text end there.
    rf"(?<![\w-])(?:{'|'.join(f'(?P<k{n}>{shape})' for n, shape in enumerate(KINDS.values()))})"
)
IN_URL = re.compile(
    r"(?<=://)(?:(?P<user>[^/\s:@$<{\[]*):(?P<password>[^\s@$<{\"'`]{1,1000})|(?P<token>[\w~.-]{20,1000}))@"
)
"""A password in a URL: https://user:password@host, or https://token@host."""
URL_PASSWORD = "a password in a URL"
"""The kind of what IN_URL finds."""
ASSIGNED = "a password or key"
"""The kind of what is known by its name only."""


VARIABLE = re.compile("[A-Z](?:[A-Z0-9]*_)+[A-Z0-9]+")
"""Names of variables with a secret: words with a line between them. A key of AWS has none."""


REVOKE = "delete it here and revoke it, since files are committed"


@dataclass(frozen=True, kw_only=True)
class Secret:
    """A secret in a file."""

    path: tuple[str | int, ...]
    kind: str
    name: str = ""
    """The name of the value: a variable, or a setting; empty where nobody knows."""

    def error(self, at: At, *, of_object: bool = False) -> InputError:
        """Error that refuses the file. `of_object`: it is an object of Kubernetes, and no stack file."""
        return at.must(
            "not contain a secret in clear",
            got=f"{self.kind}, which is not shown",
            fix=self._fix(of_object=of_object),
        )

    @property
    def fix(self) -> str:
        """Revoke it, and write something else in its place, in a stack file."""
        return self._fix(of_object=False)

    def _fix(self, *, of_object: bool) -> str:
        """With the way in which an object of Kubernetes gets a secret, or a job of a stack file."""
        put, variable, key = "put a new one", self._variable, "token"
        secret = variable.lower().replace("_", "-")
        if self.kind == URL_PASSWORD:
            put = "write the address without it, or put the whole address"
            variable, secret, key = "DATABASE_URL", "database", "url"
        read = f"name the Secret in the job, as in secrets: {{{variable}: {{secret: {secret}, key: {key}}}}}"
        if of_object:
            of_secret = f"{{secretKeyRef: {{name: {secret}, key: {key}}}}}"
            read = f"read it by env: [{{name: {variable}, valueFrom: {of_secret}}}]"
        return f"{REVOKE}; {put} into a Kubernetes Secret, and {read}"

    @property
    def _variable(self) -> str:
        """The variable in which a job may have it."""
        name = re.sub(r"[^A-Za-z0-9]+", "_", self.name).upper()
        return next((each for each in (self.name, name) if VARIABLE.fullmatch(each)), "HF_TOKEN")


def withheld(value: Any) -> tuple[Any, list[Secret]]:
    """A value without its secrets, and where they were."""
    found: list[Secret] = []
    return _without(value, (), "", found), found


@functools.lru_cache(maxsize=1000)  # names of settings and most values are those of other jobs
def hidden(text: str) -> tuple[str, tuple[str, ...]]:
    """A text without the secrets in it, with as many lines, and what they are."""
    kinds: list[str] = []

    def hide(kind: str, secret: str) -> str:
        kinds.append(kind)
        return HIDDEN + "\n" * secret.count("\n")

    def hide_token(found: re.Match[str]) -> str:
        if is_placeholder(found[0]):
            return found[0]
        return hide([*KINDS][int(str(found.lastgroup)[1:])], found[0])

    def hide_in_url(found: re.Match[str]) -> str:
        secret = found[str(found.lastgroup)]
        is_one = (
            in_address(found["user"], secret)
            if found["password"]
            else looks_secret(secret, Context.CODE)
        )
        return found[0].replace(secret, hide(URL_PASSWORD, secret)) if is_one else found[0]

    text = PRIVATE_KEY.sub(lambda found: hide("a private key", found[0]), text)
    text = TOKEN.sub(hide_token, text)
    text = IN_URL.sub(hide_in_url, text)
    for place in reversed(assigned(text)):
        kinds.append(ASSIGNED)
        text = text[: place.start] + HIDDEN + text[place.end :]
    return text, tuple(kinds)


def _without(value: Any, path: tuple[str | int, ...], name: str, found: list[Secret]) -> Any:
    """The value without its secrets, which are added to `found`. `name`: what the value is called."""
    if isinstance(value, dict):
        called = str(value.get("name", ""))
        return {
            _text(key, (*path, str(key)), "", found): _without(
                item, (*path, str(key)), called if key == "value" else str(key), found
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        names = ["", *(_option(item) for item in value)]
        return [
            _without(item, (*path, number), names[number], found)
            for number, item in enumerate(value)
        ]
    return _text(value, path, name, found)


def _option(item: Any) -> str:
    """The name of an option whose value is the next argument, or of what follows `login`."""
    if item == "login":
        return OF_LOGIN
    return item if isinstance(item, str) and re.fullmatch(r"--[a-z][\w-]*", item) else ""


def _text(value: Any, path: tuple[str | int, ...], name: str, found: list[Secret]) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    if _is_secret(name, str(value)):
        found.append(Secret(path=_clean(path), kind=ASSIGNED, name=name))
        return HIDDEN
    text, kinds = hidden(str(value))
    found += [Secret(path=_clean(path), kind=kind, name=name) for kind in dict.fromkeys(kinds)]
    return text if kinds else value


def _is_secret(name: str, value: str) -> bool:
    """True where a value is a secret because of its name; the kinds above are more precise."""
    if name.removeprefix("aws:") in KEYS or not is_secret(name, value, Context.TEXT):
        return False
    return not (HIDDEN in value or TOKEN.search(value) or PRIVATE_KEY.search(value))


def _clean(path: Sequence[str | int]) -> tuple[str | int, ...]:
    """The path, also where a key in it is a secret."""
    return tuple(hidden(step)[0] if isinstance(step, str) else step for step in path)


def secrets_of_text(text: str, known: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(line from 1, kind) of the tokens in a text beside those whose kinds are `known`: in comments,
    and where the text is no YAML."""
    left = [*known]
    for shape, kinds in ((PRIVATE_KEY, None), (TOKEN, [*KINDS])):
        for match in shape.finditer(text):
            kind = kinds[int(str(match.lastgroup)[1:])] if kinds else "a private key"
            if is_placeholder(match[0]):
                continue
            if kind in left:
                left.remove(kind)
            else:
                yield text.count("\n", 0, match.start()) + 1, kind
