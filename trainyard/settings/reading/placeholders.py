"""Placeholders: text that a template left for somebody to fill in, in the languages that people use.

Their value is not known, so no rule may judge it. Where they may stand in a job file:
trainyard/manifests/blanks.py; in a stack file: salvage.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trainyard.problems import At, InputError

_TO_PERSONS = (
    r"(?<!<)<(?:(?i:your[-_ ][\w -]+)|[A-Z][A-Z0-9_]+)>|\b(?:CHANGE|REPLACE)_?ME\b"
    r"|(?<![\w$\{])YOUR_[A-Z0-9_]+\b(?!=)"
)
_IN_TEXT = re.compile(
    rf"{_TO_PERSONS}|\{{\{{-?\s*(?:\.(?:Values|Release)\.|inputs\.|workflow\.)[^{{}}\n]*\}}\}}"
    r"|\{\{-?\s*[A-Z][A-Z0-9_]+\s*-?\}\}|%[A-Z][A-Z0-9_]{2,}%|(?<!\w)__[A-Z][A-Z0-9_]*?__(?!\w)"
)
"""In a script or another free text, where braces and dollar signs have a meaning of their own."""
_AS_OPTION = re.compile(
    r"(?<!\S)--?\w[\w.-]*[= ](\{\{-?[ ]*[A-Za-z_][\w.]*[ ]*-?\}\}|<[A-Za-z][\w .:-]*>)(?!\S)"
)
"""The value of an option in a script: no shell reads it as one, whatever its braces are."""
_OF_A_SHELL = r"\$\{[A-Za-z_]\w*(?::?[-=?+][^{}\n]*)?\}"
"""A variable, also with its default."""
_ANYWHERE = re.compile(
    rf"{_IN_TEXT.pattern}|\{{\{{[^{{}}\n]*\}}\}}|{_OF_A_SHELL}|(?<!<)<[A-Za-z][\w .:|/,-]*>"
    r"|(?i:\b(?:change|replace|fill)[-_]?me(?:[-_]?in)?\b)|^\$[A-Za-z_]\w*$|^(?:TODO|TBD|FIXME)$|@[A-Z][A-Z0-9_]{2,}@"
)
"""In a value that is a name, a number or a path."""
_IN_BRACES = re.compile(rf"{_IN_TEXT.pattern}|\{{\{{[^{{}}\n\"]*\}}\}}")
_BREAKS_YAML = re.compile(
    rf"\{{\{{[^{{}}\n]*\}}\}}|{_OF_A_SHELL}|%[A-Z][A-Z0-9_]{{2,}}%|@[A-Z][A-Z0-9_]{{2,}}@"
)
WITHOUT_SHELL = re.compile(r"\$(?:\{([A-Z][A-Z0-9_]*)\}|([A-Z][A-Z0-9_]*)\b)")
"""A variable in the way of a shell, where no shell starts: a program gets the word itself."""
SPECIAL_TOKENS = frozenset(
    f"<{name}>"
    for name in (
        *("PAD", "EOS", "BOS", "SOS", "UNK", "MASK", "SEP", "CLS", "EOT", "EOD", "EOM", "NULL"),
        *(
            "IMG",
            "IMAGE",
            "IMG_CONTEXT",
            "VIDEO",
            "AUDIO",
            "FIM_PREFIX",
            "FIM_MIDDLE",
            "FIM_SUFFIX",
        ),
    )
)
"""Words of a tokenizer, which are written as placeholders are."""
COMMENT = re.compile(r"(?:^|\s)#\s.*$")
"""The end of a line that a script does not run."""
FILLS_IN = re.compile(r"(?i)^\s*#|\b(?:sed|grep|envsubst|usage)\b|\.(?:replace|sub)\(|\[ ")
"""A line of a script that may name a placeholder: a comment, a usage, a command that looks for it or
fills it in."""
_MARK = "placeholder{}q"
"""Word of YAML that stands in the place of a placeholder while its file is read."""
_MARKED = re.compile(r"placeholder(\d+)q")


def placeholder_error(place: At, text: str) -> InputError:
    """The error of a placeholder at a place."""
    return place.must(
        "not contain a placeholder: nothing fills it in", got=text, fix="write what belongs there"
    )


def placeholders(script: str) -> list[str]:
    """Every placeholder of a script or a free text that nobody filled in, once."""
    lines = [COMMENT.sub("", line) for line in script.splitlines() if not FILLS_IN.search(line)]
    patterns = (_IN_TEXT, _AS_OPTION)
    return _once(found for line in lines for each in patterns for found in each.findall(line))


def placeholders_of_word(word: str) -> list[str]:
    """Every placeholder of an argument that no shell and no template of a script reads, once."""
    return _once(_IN_BRACES.findall(word))


def placeholders_of_value(value: str) -> list[str]:
    """Every placeholder of a name, a number or a path, once."""
    return _once(found[0] for found in _ANYWHERE.finditer(value))


def is_placeholder(value: str) -> bool:
    """True where a whole value is one, and there is nothing beside it."""
    found = _ANYWHERE.fullmatch(value.strip())
    return found is not None and value.strip().upper() not in SPECIAL_TOKENS


def _once(found: Iterable[str]) -> list[str]:
    return [each for each in dict.fromkeys(found) if each.upper() not in SPECIAL_TOKENS]


def without(text: str, instead: str, *, free: bool) -> str:
    """A text with something else in the place of its placeholders. `free`: it is a script, or another
    free text."""
    if free:
        text = _AS_OPTION.sub(lambda found: found[0].replace(found[1], instead), text)
    return (_IN_BRACES if free else _ANYWHERE).sub(instead, text)


def masked(text: str) -> tuple[str, tuple[str, ...]]:
    """The text of a YAML file with a word in the place of each placeholder that YAML reads as something
    else, and these placeholders."""
    found: list[str] = []

    def mask(one: re.Match[str]) -> str:
        found.append(one[0])
        return _MARK.format(len(found) - 1)

    return _BREAKS_YAML.sub(mask, text), tuple(found)


def unmasked(text: str, found: Sequence[str]) -> str:
    """The text as it was before `masked`."""
    return _MARKED.sub(lambda mark: found[int(mark[1])], text) if found else text


def is_only_a_placeholder(line: str) -> bool:
    """True for a line of a masked file with nothing else in it."""
    return _MARKED.fullmatch(line.strip()) is not None or is_placeholder(line)
