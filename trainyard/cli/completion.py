"""`trainyard completion`: what a shell needs to complete words, options and stacks."""

from __future__ import annotations

import argparse

from trainyard.cli.options import OPTIONS
from trainyard.cli.words import WORDS

STACKS = "printf '%s\\n' Pulumi.*.yaml | sed -n 's/^Pulumi\\.\\([^*]*\\)\\.yaml$/\\1/p'"
"""Prints the stacks of the folder that somebody is in."""
KINDS = {"shell": ("bash", "zsh"), "kind": ("environment", "team")}
"""First argument → the words that it can be."""
BASH = """\
# Completion of trainyard for bash.
_trainyard() {{
    local word=${{COMP_WORDS[1]}} now=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    local found=
    if [ "$COMP_CWORD" = 1 ]; then
        found="{words}"
    elif [ "$before" = --stack ]; then
        found=$({stacks})
    else
        case $word in
{cases}
        esac
        case $before in {files}) found= ;; esac
    fi
    COMPREPLY=($(compgen -W "$found" -- "$now"))
}}
complete -o default -F _trainyard trainyard
"""
ZSH = """\
#compdef trainyard
# Completion of trainyard for zsh.
_trainyard_stacks() {{ compadd -- ${{(f)"$({stacks})"}} }}
_trainyard() {{
    local -a does
    does=({does})
    if (( CURRENT == 2 )); then
        _describe word does
        return
    fi
    local word=$words[2]
    shift words
    (( CURRENT-- ))
    case $word in
{cases}
    esac
}}
compdef _trainyard trainyard
"""


def main(options: argparse.Namespace) -> int:
    """Print it; 0."""
    print(bash() if options.shell == "bash" else zsh(), end="")
    return 0


def bash() -> str:
    """The completion of bash."""
    cases = [
        f'            {name}) found="{" ".join((*KINDS.get(word.argument, ()), *word.takes, "--help"))}"'
        + (f'" "$({STACKS})' if word.argument == "stack" else "")
        + " ;;"
        for name, word in WORDS.items()
    ]
    return BASH.format(
        words=" ".join(WORDS), stacks=STACKS, cases="\n".join(cases), files="|".join(_valued())
    )


def zsh() -> str:
    """The completion of zsh."""
    does = " ".join(_quoted(f"{name}:{word.does}") for name, word in WORDS.items())
    cases = [f"        {name}) _arguments {_arguments(name)} ;;" for name in WORDS]
    return ZSH.format(stacks=STACKS, does=does, cases="\n".join(cases))


def _valued() -> list[str]:
    """Options behind which stands a value that no list completes."""
    return [
        name
        for name, how in OPTIONS.items()
        if how.get("action") != "store_true" and name != "--stack"
    ]


def _arguments(name: str) -> str:
    """Arguments of a word for zsh's _arguments."""
    word = WORDS[name]
    first = {"stack": "_trainyard_stacks", "files": "_files"}
    first |= {argument: f"({' '.join(kinds)})" for argument, kinds in KINDS.items()}
    told = [f"1:{word.argument}:{first.get(word.argument, '')}"] if word.argument else []
    told += [f"2:{word.second}:_files"] if word.second else []
    for option in word.takes:
        how = OPTIONS[option]
        text = how["help"].replace("%(default)s", str(how.get("default")))
        text = text.replace("%(default)g", f"{how.get('default')}")
        sentence = f"{option}[{text.replace('[', '(').replace(']', ')').replace(':', ' ')}]"
        if how.get("action") != "store_true":
            asked = "_trainyard_stacks" if option == "--stack" else "_files"
            sentence += f":{how['metavar']}:{asked}"
        told.append(sentence)
    return " ".join(map(_quoted, told))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
