"""Finds the errors of a module that no test causes."""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

ERROR = re.compile(r"\bInputError\($|\bInputError\(path|\.(must|not_set)\(")
"""A line that makes an error."""


def lines_not_reached(modules: Iterable[ModuleType], run: Callable[[], Any]) -> list[str]:
    """file:line of every error of these modules that `run` does not make."""
    files = {module.__file__ for module in modules}
    offered = {
        (module.__file__, number)
        for module in modules
        for number, line in enumerate(inspect.getsource(module).splitlines(), start=1)
        if ERROR.search(line)
    }
    assert len(offered) >= len(files), "each module makes an error"
    reached: set[tuple[str | None, int]] = set()

    def watch(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename in files:
            if event == "line":
                reached.add((frame.f_code.co_filename, frame.f_lineno))
            return watch
        return None if event == "call" else watch

    before = sys.gettrace()
    sys.settrace(watch)
    threading.settrace(watch)
    try:
        run()
    finally:
        sys.settrace(before)
        threading.settrace(None)  # type: ignore[arg-type]
    return sorted(f"{file}:{line}" for file, line in offered - reached)
