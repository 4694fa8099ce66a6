"""Commands of a shell script, in their order, with the operators between them: as much of bash as is needed to see
which command hides the end of another one."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

SHELLS = ("bash", "sh", "dash", "ash", "zsh", "ksh")
_WITH_A_FILE = ("--rcfile", "--init-file")
"""Options of bash whose value is the next word."""
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
    |(?P<word>(?:\\.|\(\([^()\n]*\)\)|"(?:\\.|[^"\\])*+"|'[^']*'|(?:[$<>]|(?<=[\w+]=)){_INNER}|\$\{{[^}}\n]*\}}|`[^`]*`|[^\s;&|()<>"'`\\])+)
    |(?P<redirect>&>>?|>>?&?|>\||<&|<<<|<>|<)
    |(?P<operator>\|\||&&|;;&?|;&|\|&|[|;&\n()])""",
    re.DOTALL | re.VERBOSE,
)
_OPENS = {"if", "while", "until", "for", "case", "select", "{"}
_CLOSES = {"fi", "done", "esac", "}"}
_INSIDE = {"then", "else", "elif", "do"}
READS_MORE = re.compile(
    r"(?m)(?:^|[;&|(])[ \t]*(?:source|\.)[ \t]+(?!\S*(?:activate|conda|profile|bashrc))|\beval\b"
)
"""A script that may take variables from elsewhere."""


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
    under: str
    """Conditions of it, a line each: "if [ a = b ]", "else if [ a = b ]", "case $A in 0", "[ a = b ] &&"."""


@dataclass(frozen=True, kw_only=True)
class Script:
    """A script without its heredocs."""

    text: str
    commands: tuple[Command, ...]
    """None of a text that cannot be read so."""


def text_at(words: Sequence[str]) -> int | None:
    """Place of the text that a shell runs, in the words that start it: its first word that is no option, where an
    option has the letter c (POSIX.1-2024, Utilities, sh; bash 5.2, Invoking Bash). None where no shell gets a text:
    in `bash run.sh -c a.yaml` the -c is an option of run.sh."""
    if not words or PurePosixPath(words[0]).name not in SHELLS:
        return None
    has_text, at = False, 1
    while at < len(words) and words[at].startswith(("-", "+")):
        option = words[at]
        at += 1
        if option in ("-", "--"):
            break
        if option.startswith("--"):
            at += option in _WITH_A_FILE
        else:
            has_text |= option.startswith("-") and "c" in option
            at += len(re.findall("[oO]", option))  # each has the name of an option behind it
    return at if has_text and at < len(words) else None


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


def words_of(text: str) -> list[str]:
    """Words of a command, with their quotes. An array, a=(b c), and $(b c) are in one word."""
    return [found[0] for found in _TOKEN.finditer(text) if found.lastgroup == "word"]


@dataclass(kw_only=True)
class _Block:
    """A compound command that is open."""

    start: int
    """Offset of its condition: of if or elif, while, case."""
    condition: str


class _Reader:
    """Tokens of a script, one after the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Command] = []
        self.start: int | None = None
        """Offset at which the command begins that is read; None between two."""
        self.blocks: list[_Block] = []
        """Blocks that are open, the outermost first."""
        self.brackets: list[int] = []
        """Number of blocks at each ( that is open. A ) without one ends a pattern of case."""

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
            conditions = [*(block.condition for block in self.blocks), self._joined()]
            self.found.append(
                Command(
                    text=self.text[self.start : at].strip(),
                    depth=len(self.blocks),
                    operator=operator,
                    end=at,
                    under="\n".join(filter(None, conditions)),
                )
            )
            self.start = None

    def _joined(self) -> str:
        """Commands that && and || join to the next one."""
        first = len(self.found)
        while first and self.found[first - 1].operator in ("&&", "||"):
            first -= 1
        return " ".join(f"{each.text} {each.operator}" for each in self.found[first:])

    def _word(self, token: re.Match[str]) -> None:
        word = token[0]
        if self.start is not None and word == "{" and self.text[self.start] == ")":
            self.start = None  # the body of a function
        if self.start is not None:
            return
        if word in _OPENS:
            self.blocks.append(_Block(start=token.start(), condition=self._joined()))
        elif word in _INSIDE:
            self._inside(word, token.start())
        else:
            if word in _CLOSES and self.blocks:
                self.blocks.pop()
            self.start = token.start()

    def _inside(self, word: str, at: int) -> None:
        """The next part of a block."""
        if not self.blocks:
            return
        block = self.blocks[-1]
        if word in ("then", "do"):
            words = self.text[block.start : at].rstrip("; \t\n").split()
            block.condition = " ".join([*filter(None, [block.condition]), *words])
        else:
            block.start, block.condition = at, f"else {block.condition}"

    def _operator(self, token: re.Match[str]) -> None:
        operator = token[0]
        self.end(operator.replace("|&", "|"), token.start())
        if operator == "(":
            self.brackets.append(len(self.blocks))
            self.blocks.append(_Block(start=token.start(), condition=self._joined()))
        elif operator == ")" and self.brackets:
            del self.blocks[self.brackets.pop() :]
            self.start = token.start()
        elif operator == ")" and self.blocks and self.found:
            block = self.blocks[-1]
            subject = self.text[block.start : token.start()].split()[:2]
            pattern = self.found[-1].text.rpartition(" in ")[2]
            block.condition = " ".join([*subject, "in", pattern])
