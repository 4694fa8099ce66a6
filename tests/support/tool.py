"""Words of the tool, as tests type them."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from trainyard.cli import main
from trainyard.cli.words import WORDS


def run_word(word: str, arguments: Sequence[str]) -> int:
    """The exit code of a word that somebody has typed, wherever it acts: neither the rehearsal of this
    folder nor the variables of this shell count, and no first and no last line is printed."""
    options = main.read([word, *arguments])
    return importlib.import_module(WORDS[word].module).main(options)
