"""Puts the plugins where the engine looks:
PULUMI_HOME/plugins/<kind>-<name>-v<version>/pulumi-<kind>-<name>.

The versions are those of the installed SDKs, which is what a program asks for. The language host
lies there too: the engine prefers one that is bundled with pulumi (the genuine one), and warns
about one on PATH.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from importlib import metadata
from pathlib import Path

from rehearsal import paths
from rehearsal.toolchain import genuine

PLUGINS = {
    ("resource", "aws"): ("pulumi-aws", "rehearsal.providers.aws.provider"),
    ("resource", "eks"): ("pulumi-eks", "rehearsal.providers.eks"),
    ("resource", "kubernetes"): ("pulumi-kubernetes", "rehearsal.providers.kubernetes.provider"),
    ("language", "python"): ("pulumi", "rehearsal.providers.language"),
}
"""Plugin → the distribution that has its version, and the module that is its program."""
LANGUAGE_EXEC = "python/cmd/pulumi-language-python-exec"

SCRIPT = """#!/bin/sh
# Written by rehearsal/providers/install.py at every start; helm and the AWS CLI are looked for in these folders first.
PATH={path}:$PATH PULUMI_LANGUAGE_PYTHON_EXEC={executor} exec {command} "$@"
"""
PROGRAM = (
    "import runpy, sys; sys.path.insert(0, {home!r}); runpy.run_module({module!r},"
    " run_name='__main__')"
)


def install(pulumi_home: Path, bin_dir: Path) -> None:
    """Write the plugins into this PULUMI_HOME; they call programs of bin_dir."""
    for (kind, name), (distribution, module) in PLUGINS.items():
        version = metadata.version(distribution)
        folder = pulumi_home / "plugins" / f"{kind}-{name}-v{version}"
        folder.mkdir(parents=True, exist_ok=True)
        program, executor = folder / f"pulumi-{kind}-{name}", folder / Path(LANGUAGE_EXEC).name
        if kind == "language":
            shutil.copyfile(language_exec(), executor)
        released = genuine.provider(name, version) if name in genuine.RELEASED else None
        command = [str(released)] if released and released != program else _ours(module)
        _write(program, command, bin_dir, executor)


def language_exec() -> Path:
    """Upstream's program that runs a Python program, in the module cache that pulumi was built
    from."""
    module = f"github.com/pulumi/pulumi/sdk/v3@v{metadata.version('pulumi')}"
    return paths.CACHE / "go" / "mod" / module / LANGUAGE_EXEC


def _ours(module: str) -> list[str]:
    return [sys.executable, "-P", "-c", PROGRAM.format(home=str(paths.HOME), module=module)]


def _write(file: Path, command: list[str], bin_dir: Path, executor: Path) -> None:
    path = shlex.quote(f"{bin_dir}:{Path(sys.executable).parent}")
    text = SCRIPT.format(
        path=path, executor=shlex.quote(str(executor)), command=shlex.join(command)
    )
    new = file.with_suffix(".new")
    new.write_text(text)
    new.chmod(0o755)
    new.replace(file)  # an engine that runs now keeps the old one
