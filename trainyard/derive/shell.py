"""Commands of a shell script, in their order, with the operators between them: as much of bash as is needed to see
which command hides the end of another one."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

_HEREDOC = re.compile(
    r"(?<!<)<<-?(?!<)[ \t]*(?P<quote>['\"]?)\\?(?P<end>[A-Za-z_]\w*)(?P=quote)(?P<rest>[^\n]*)\n"
    r"(?:.*?\n)??[ \t]*(?P=end)[ \t]*(?=\n|\Z)",
    re.DOTALL,
)
_INNER = r"\([^()]*+\)"
for _ in range(3):
    _INNER = rf"\((?:[^()]++|{_INNER})*+\)"
_TOKEN = re.compile(
    rf"""(?P<blank>[ \t\r]+|\\\n)
    |(?P<comment>\#[^\n]*)
    |(?P<word>(?:\\.|"(?:\\.|[^"\\])*+"|'[^']*'|[$<>]{_INNER}|\$\{{[^}}\n]*\}}|`[^`]*`|[^\s;&|()<>"'`\\])+)
    |(?P<redirect>&>>?|>>?&?|>\||<&|<<<|<>|<)
    |(?P<operator>\|\||&&|;;&?|;&|\|&|[|;&\n()])""",
    re.DOTALL | re.VERBOSE,
)
_OPENS = {"if", "while", "until", "for", "case", "select", "{"}
_CLOSES = {"fi", "done", "esac", "}"}
_INSIDE = {"then", "else", "elif", "do"}


@dataclass(frozen=True, kw_only=True)
class Command:
    """A simple command, or the word that ends a compound one: fi, done, esac, } or )."""

    text: str
    depth: int
    """Number of compound commands and functions that it is in."""
    operator: str
    """The operator behind it: a newline or one of ; & | || &&; empty at the end."""
    end: int
    """Offset behind it, in the text of `Script`."""


@dataclass(frozen=True, kw_only=True)
class Script:
    """A script without its heredocs."""

    text: str
    commands: tuple[Command, ...]
    """None of a text that cannot be read so."""


@functools.lru_cache(maxsize=64)
def read_script(text: str) -> Script:
    """The commands of a script. Several rules ask for those of one."""
    plain = _HEREDOC.sub(lambda found: found["rest"], text)
    reader = _Reader(plain)
    at = 0
    for found in _TOKEN.finditer(plain):
        if found.start() != at:
            return Script(text=plain, commands=())
        at = found.end()
        reader.read(found)
    reader.end("", len(plain))
    return Script(text=plain, commands=tuple(reader.found) if at == len(plain) else ())


class _Reader:
    """Tokens of a script, one after the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Command] = []
        self.start: int | None = None
        """Offset at which the command begins that is read; None between two."""
        self.depth = 0
        self.brackets: list[int] = []
        """Depth at each ( that is open. A ) without one ends a pattern of case."""

    def read(self, token: re.Match[str]) -> None:
        """The next token."""
        if token.lastgroup == "word":
            self._word(token)
        elif token.lastgroup == "redirect":
            self.start = token.start() if self.start is None else self.start
        elif token.lastgroup == "operator":
            self._operator(token)

    def end(self, operator: str, at: int) -> None:
        """The end of a command, where there is one."""
        if self.start is not None:
            text = self.text[self.start : at].strip()
            self.found.append(Command(text=text, depth=self.depth, operator=operator, end=at))
            self.start = None

    def _word(self, token: re.Match[str]) -> None:
        word = token[0]
        if self.start is not None and word == "{" and self.text[self.start] == ")":
            self.start = None  # the body of a function
        if self.start is not None or word in _INSIDE:
            return
        if word in _OPENS:
            self.depth += 1
            return
        self.depth -= word in _CLOSES
        self.start = token.start()

    def _operator(self, token: re.Match[str]) -> None:
        operator = token[0]
        self.end(operator.replace("|&", "|"), token.start())
        if operator == "(":
            self.brackets.append(self.depth)
            self.depth += 1
        elif operator == ")" and self.brackets:
            self.depth = self.brackets.pop()
            self.start = token.start()
