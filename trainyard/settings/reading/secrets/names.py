"""Secrets that only their name gives away, as in password=… or API_KEY: …: which names mean one, and
which values look like one.

A value is no secret because of its name alone: most values of such names are variables, calls,
placeholders and the tokens of a tokenizer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

NAME = re.compile(
    r"(?:[A-Z0-9]+_)*(?:TOKEN|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|CREDENTIALS?)"
    r"|[A-Z0-9_]{0,60}(?:SECRET|PASSWORD|PASSWD)[A-Z0-9_]{0,60}"
    r"|(?i:(?:[\w.-]{0,60}[-_.])?(?:auth[-_]?)?(?:api[-_]?key|api[-_]?token|access[-_]?key"
    r"|access[-_]?token|secret[-_]?key|account[-_]?key|client[-_]?secret|session[-_]?token"
    r"|(?:wandb|comet|neptune|clearml|openai|anthropic|hf|ngc)[-_]?key"
    r"|password|passwd|passphrase|token))"
)
"""Names whose value can be a secret."""
NO_SECRET_NAME = re.compile(
    r"(?i).*(?:_(?:NAME|PATH|FILE|DIR|ARN|ID|URL|MOUNT|REF|TYPE|REGION|BUCKET|VERSION|BACKEND|ENGINE"
    r"|PROVIDER|STORE|MANAGER|LENGTH|PREFIX|NAMESPACE|HOST|PORT|USER)|PULL_SECRET)$"
    r"|(?:.*[-_.])?(?:BOS|EOS|SOS|PAD|UNK|SEP|CLS|CLASS|MASK|MAX|MIN|NUM|SPECIAL|IMAGE|IMG|VIDEO|AUDIO"
    r"|SPEECH|VISION|STOP|START|END|BEGIN|FIRST|LAST|NEXT|PREV|PREFIX|SUFFIX|EOT|EOD|EOM|FILL|PER"
    r"|INSTANCE|PLACEHOLDER|INITIALIZER|TRIGGER|ADDITIONAL|EXTRA|IGNORE|LANG|THINK|TOOL|PROMPT)"
    r"[-_]TOKEN$"
)
"""Names that only resemble one: where a secret is or what it is for, and tokens of a tokenizer."""
_KEYWORD = r"(?i:token|api_?-?key|_key|-key|tkey|skey|secret|passw|passphrase|credential)"
ASSIGNED = re.compile(
    # Up to two dashes of an option, a quote, or `set` of `aws configure set NAME value`.
    r"(?<![\w.-])(?P<before>\bset[ \t]+|(?:\\?[\"'])?-{0,2})"
    rf"(?P<name>(?=[\w.-]{{0,60}}{_KEYWORD})[A-Za-z_][\w.-]{{2,120}})(?P<close>(?:\\?[\"'])?\]?)"
    # The type of a variable in Python: api_key: str = …
    r"(?::[ \t]*[A-Za-z][\w\[\]|. ]{0,40}?(?=[ \t]*=))?"
    # The default of an option in Python: "--api-key", type=str, default=…
    r"(?P<sign>[ \t]*[=:,][ \t]*(?:(?:\w{1,20}=[\w.]{1,20},[ \t]*){0,3}default=)?|[ \t]+)"
    r"(?:[bBrRuU]?(?P<quote>\\?[\"'])(?P<quoted>[^\"'\n\\]{4,4000})(?P=quote)"
    r"|(?P<bare>[^\s\"',;&|\\()\[\]{}=]{4,4000}={0,2})(?P<call>[(\[{]?))",
    re.MULTILINE,
)
"""A name, and a value for it, in a line of Python, shell, YAML or JSON, or of an option. call: the
value is an expression."""
LOGIN = re.compile(
    r"\bwandb(?:\.|[ \t]+)login\b[^\n;&|]{0,120}?(?<![\w$-])(?P<key>(?:local-)?[0-9a-f]{40})(?![\w-])"
    r"|\blogin\b[^\n;&|]{0,120}?[ \t](?:-p[ \t=]?|--password[ \t=])[\"']?(?P<password>[^\s\"']{6,})"
    r"|\b(?:curl|wget)\b[^\n;&|]{0,200}?[ \t](?:-u|--user)[ \t=]?[\"']?[\w.@-]+:(?P<user>[^\s\"']{6,})"
    r"|\b(?:Bearer|Basic)[ \t]+(?P<header>[\w.~+/-]{16,}=*)"
)
"""The value of a command that logs in, or of a header that does."""
_MARKS = re.compile(r"[\[\]{}<>`]|\$[\w({]|…|\.\.\.|%s|://|^[~/.].*/.*/")
"""In a value that is a placeholder, a variable, a path or an address."""
_EXPRESSION = re.compile(r"[.()\[\]{}<>$`*%…:]|^[!@~/-]")
"""In a value without quotes that is more than one word: an expression, a path, an option."""
_SCHEME = re.compile(
    r"(?i)(?:arn|env|file|vault|op|ssm|secretsmanager|ref|keyring|pass|aws|gcp)[:+]"
)
"""Before a value that says where a secret is."""
_PLACEHOLDER = re.compile(
    r"(?i)x{5,}|example|placeholder|redacted|changeme|change_me|replace|(?:^|[-_ ])(?:your?|insert"
    r"|dummy|fake|none|null|empty|unused|needed|required|here|todo)(?:[-_ \d]|$)|(?-i:abcdefghijkl)"
)
"""In a value that stands for one. AWS's own examples end with EXAMPLE or EXAMPLEKEY."""
_COMMON = re.compile(
    r"(?i)(?:(?:token|sk|hf|key|my|test|demo|local|abc|admin|root|user|guest|minio(?:admin)?|pass"
    r"|passwd|password|postgres|mysql|redis|rabbitmq|airflow|secret|train|model|run|x+)[-_]?)+\d{0,4}"
    r"|5241590000000000"  # Ray's own default for its Redis
)
"""Values that everybody knows."""
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
OF_LOGIN = "login-token"
"""A name for the word behind `login` in a list of words: a token, a registry or a file."""
MOST_INDENTED = 100
"""Blanks before a name that begins its line."""
PASSWORDS = re.compile(r"(?i)passw|passphrase|secret|credential")
"""Names whose values people invent; those of other names are generated."""


class Context(Enum):
    """Form in which a value stands: as text or in code."""

    TEXT = "text"
    """Text as it is written: in quotes, in a YAML file, behind an option, in a shell."""
    CODE = "code"
    """Text, or an expression, such as a variable of Python."""


@dataclass(frozen=True, kw_only=True)
class Assigned:
    """A secret in a text."""

    start: int
    end: int


def assigned(text: str) -> list[Assigned]:
    """Where secrets stand in a text that are known by their names, from the first to the last."""
    places = list[Assigned]()
    for place in sorted([*_of_names(text), *_of_commands(text)], key=lambda place: place.start):
        if not places or places[-1].end <= place.start:
            places.append(place)
    return places


def _of_names(text: str) -> Iterator[Assigned]:
    at = 0
    while found := ASSIGNED.search(text, at):
        group = "quoted" if found["quoted"] else "bare"
        context = None if found["call"] else _context(found)
        name = ("--" if "-" in found["before"] else "") + found["name"]
        is_one = context and is_secret(name, found[group], context, bare=group == "bare")
        # A text in quotes can be the name of the next value.
        at = found.end(group if is_one or (context and group == "bare") else "name")
        if is_one:
            yield Assigned(start=found.start(group), end=found.end(group))


def _of_commands(text: str) -> Iterator[Assigned]:
    for found in LOGIN.finditer(text):
        group = str(found.lastgroup)
        context = Context.CODE if group == "header" else Context.TEXT
        if group == "key" or looks_secret(found[group], context, is_password=True):
            yield Assigned(start=found.start(group), end=found.end(group))


def _context(found: re.Match[str]) -> Context | None:
    """Form in which the value of a name stands; None where the text is no value of it."""
    before, sign = found["before"], found["sign"].strip()[:1]
    is_key = before.strip("-") != "" and found["close"] != ""
    is_value = {
        "": "-" in before or before.startswith("set"),
        ",": is_key and found["quoted"],
    }
    if not is_value.get(sign, True):
        return None
    is_text = {
        "": True,
        ",": "-" in before,
        "=": found["quoted"] or (found["sign"] == "=" and _is_setting(found)),
        ":": found["quoted"] or (not is_key and (before != "" or _begins_line(found))),
    }
    return Context.TEXT if is_text[sign] else Context.CODE


def _is_setting(found: re.Match[str]) -> bool:
    """True where the name is an option, a variable of a shell, or a parameter of an address."""
    is_parameter = found.string[max(0, found.start() - 1) : found.start()] in ("?", "&")
    return "-" in found["before"] or found["name"].isupper() or is_parameter


def _begins_line(found: re.Match[str]) -> bool:
    """True where the name is the first word of its line."""
    start = max(0, found.start() - MOST_INDENTED)
    _, end_of_line, lead = found.string[start : found.start()].rpartition("\n")
    return bool(end_of_line or not start) and not lead.strip(" \t-#")


def is_secret(name: str, value: str, context: Context, *, bare: bool = False) -> bool:
    """True where the value of a name is a secret. `name`: of an option, with its dashes. `bare`:
    the value has no quotes."""
    if not NAME.fullmatch(name.lstrip("-")) or NO_SECRET_NAME.match(name):
        return False
    if name in ("token", OF_LOGIN):  # most such tokens are words of a model
        context = Context.CODE
    if bare and _EXPRESSION.search(value):
        # An attribute, such as a.b, has no part that nobody can read.
        return not re.search(r"[(\[{<$`]", value) and any(map(_is_random, value.split(".")))
    return looks_secret(value, context, is_password=bool(PASSWORDS.search(name)))


def looks_secret(value: str, context: Context, *, is_password: bool = False) -> bool:
    """True where a value looks like a secret: one word of letters and digits that is long and
    mixed, or, in a text, any word of letters and digits that nobody knows. `is_password`: people
    invent it, so it can be shorter and have other characters."""
    value = value.strip()
    if is_placeholder(value):
        return False
    if re.fullmatch(r"[A-Za-z0-9+/]{40,}={0,2}", value) and _is_base64(value):
        return True
    if re.search(r"\s", value) or _MARKS.search(value):
        return False
    if _is_random(value):
        return True
    is_text = context is Context.TEXT and not re.search(r"^[%*!@~/.(]|\.[a-z]{2,5}$", value)
    return is_text and _is_word(value, is_password)


def is_placeholder(value: str) -> bool:
    """True where a value stands for a secret, says where it is, or is one that everybody knows."""
    return bool(_PLACEHOLDER.search(value) or _COMMON.fullmatch(value) or _SCHEME.match(value))


def in_address(user: str, password: str) -> bool:
    """True where the text behind a user in an address is a password; there it can be any word."""
    if len(password) < 4 or password == user or re.fullmatch(r"[A-Z_]+", password):
        return False
    is_port = re.match(r"\d{1,5}(?:/|$)", password)
    return not (is_port or _MARKS.search(password) or is_placeholder(password))


def _is_word(value: str, is_password: bool) -> bool:
    letters = sum(each.isalpha() for each in value)
    digits = sum(each.isdigit() for each in value)
    if not letters:
        return digits >= 12 and digits == len(value)
    if is_password and len(value) >= 8 and re.search(r"[!@#%^&*?~+=]", value):
        return True
    return digits > 0 and letters + digits >= (6 if is_password else 8)


def _is_random(value: str) -> bool:
    """True where a word of a value changes so often between small letters, large ones and digits
    that no person can have made it up as a name."""
    if _UUID.search(value):
        return True
    return any(map(_is_mixed, re.split(r"[^A-Za-z0-9]+", value))) or (
        len(value) >= 30 and _is_mixed(re.sub(r"[^A-Za-z0-9]", "", value)) and "-" not in value
    )


def _is_base64(value: str) -> bool:
    """True where a text that can be a path has large letters and digits as no path has them."""
    word = re.sub(r"[+/=]", "", value)
    return not word.islower() and not word.isupper() and _is_mixed(word) and _changes(word) >= 0.4


def _is_mixed(word: str) -> bool:
    """True where a word is long, and has small letters, large ones and digits in no order."""
    numbers = len(re.findall(r"\d+", word))
    at_least = {0: 0.45, 1: 0.4 if len(word) < 24 else 0.25, 2: 0.4 if len(word) < 16 else 0.15}
    return len(word) >= (12 if numbers else 20) and _changes(word) >= at_least.get(numbers, 0)


def _changes(word: str) -> float:
    """Share of the characters of a word behind which another kind follows: small letters, large ones,
    digits."""
    kinds = ["digit" if c.isdigit() else "large" if c.isupper() else "small" for c in word]
    return sum(a != b for a, b in pairwise(kinds)) / max(1, len(word))
