"""A Dockerfile whose image is its base and some files: such an image needs no program that runs
containers. What it says, and the layer with its files.

Read are FROM, ARG, COPY, WORKDIR, ENV, LABEL, USER, CMD and ENTRYPOINT in their plain forms
(docs.docker.com/reference/dockerfile). Everything else needs a builder.
"""

from __future__ import annotations

import io
import json
import posixpath
import re
import shlex
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

NAME = "Dockerfile"
IGNORES = ".dockerignore"
_VARIABLE = re.compile(r"\\\$|\$(?:\{(\w+)\}|(\w+))")
_ENDING = re.compile(r"\.[A-Za-z]\w+")
"""End of a file's name. Folders are called profile.d and python3.11."""


class NeedsBuilder(Exception):
    """Error: a Dockerfile has a part that only a builder can make."""


@dataclass(kw_only=True)
class Recipe:
    """An image without RUN."""

    base: str = ""
    files: dict[str, Path] = field(default_factory=dict)
    """Path in the image, without the leading / → file or, for a folder, folder."""
    env: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    workdir: str = ""
    """Empty: that of the base."""
    user: str = ""
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


def read(folder: Path) -> Recipe:
    """Recipe in the Dockerfile of a folder. NeedsBuilder where a part of it can only be built."""
    if (folder / IGNORES).exists():
        raise NeedsBuilder(f"{IGNORES} is only read by a builder")
    recipe, known = Recipe(), {}
    for word, rest in _instructions((folder / NAME).read_text()):
        _follow(recipe, known, folder, word, rest)
    if not recipe.base:
        raise NeedsBuilder("there is no FROM")
    return recipe


def layer(recipe: Recipe) -> bytes:
    """The files as a tar, the same bytes for the same files: of nobody, without times. Folders are not
    in it, unless they are empty: a folder of the base keeps its rights, and runtimes make the others
    (containerd, archive/tar.go, mkparent)."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, source in sorted(recipe.files.items()):
            entry = tarfile.TarInfo(path)
            if source.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                if not any(source.iterdir()):
                    tar.addfile(entry)
                continue
            content = source.read_bytes()
            entry.size = len(content)
            entry.mode = 0o755 if source.stat().st_mode & 0o100 else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return written.getvalue()


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    """(instruction, what follows it), lines that go on put together."""
    if re.search(r"^#\s*escape\s*=", text, re.MULTILINE | re.IGNORECASE):
        raise NeedsBuilder("another escape character")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines))
    for line in filter(None, map(str.strip, joined.splitlines())):
        word, _, rest = line.partition(" ")
        if "<<" in rest:
            raise NeedsBuilder(f"{word.upper()} with text of its own (<<)")
        yield word.upper(), rest.strip()


def _follow(recipe: Recipe, known: dict[str, str], folder: Path, word: str, rest: str) -> None:
    """Add one instruction. `known`: variables so far."""
    if word in ("ENTRYPOINT", "CMD"):  # their variables are for the shell of the container
        _starts(recipe, word, rest)
    elif word == "ARG":
        name, given, value = rest.partition("=")
        known.update({name: " ".join(shlex.split(_filled(value, known)))} if given else {})
    elif word == "COPY":
        _copy(recipe, folder, _filled(rest, known))
    elif word in ("ENV", "LABEL"):
        found = _pairs(word, _filled(rest, known))
        (recipe.env if word == "ENV" else recipe.labels).update(found)
        known.update(found if word == "ENV" else {})
    elif word in _SETS:
        _SETS[word](recipe, _filled(rest, known))
    else:
        raise NeedsBuilder(f"{word} runs in a container" if word == "RUN" else word)


def _starts(recipe: Recipe, word: str, rest: str) -> None:
    if word == "ENTRYPOINT":
        recipe.entrypoint, recipe.command = _words(rest), []
    else:
        recipe.command = _words(rest)


def _filled(text: str, known: dict[str, str]) -> str:
    """The text with its variables."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name is None or name not in known:
            raise NeedsBuilder(f"the variable {found[0]} has no value in the {NAME}")
        return known[name]

    filled = _VARIABLE.sub(value, text)
    if "$" in filled:
        raise NeedsBuilder(f"{filled}: a variable in another form than $NAME")
    return filled


def _base(recipe: Recipe, rest: str) -> None:
    words = [word for word in rest.split() if not word.startswith("--platform=")]
    if recipe.base or len(words) != 1 or words[0] == "scratch":
        raise NeedsBuilder("more stages than one, or none to begin with")
    recipe.base = words[0]


def _workdir(recipe: Recipe, rest: str) -> None:
    recipe.workdir = _inside(recipe, rest)


def _user(recipe: Recipe, rest: str) -> None:
    recipe.user = rest


def _copy(recipe: Recipe, folder: Path, rest: str) -> None:
    """COPY: a source that is a folder stands for what is in it."""
    if rest.startswith("--"):
        raise NeedsBuilder(f"COPY {rest.split()[0]}")
    words = _words(rest) if rest.startswith("[") else shlex.split(rest)
    *sources, to = words
    whole = folder.resolve()
    found = [path for source in sources for path in _sources(whole, source)]
    target = _inside(recipe, to).strip("/")
    named = to.endswith(("/", ".")) or len(found) > 1 or found[0].is_dir()
    into = named or _is_folder(recipe, target, found[0])
    for source in found:
        if source.is_dir():
            for path in sorted(source.rglob("*")):
                _add(recipe, whole, posixpath.join(target, path.relative_to(source)), path)
        else:
            _add(recipe, whole, posixpath.join(target, source.name) if into else target, source)


def _is_folder(recipe: Recipe, target: str, source: Path) -> bool:
    """True where the target of a file is a folder: builders copy into one that is there already (tonistiigi/fsutil,
    copy/copy.go, prepareTargetDir). NeedsBuilder where it may be one of the base: a file in the layer would replace
    all of it."""
    if target in recipe.files:
        return recipe.files[target].is_dir()
    if any(f"{each}/".startswith(f"{target}/") for each in (recipe.workdir[1:], *recipe.files)):
        return True
    name = posixpath.basename(target)
    suffix = posixpath.splitext(name)[1]
    if name == source.name or suffix and suffix == source.suffix or _ENDING.fullmatch(suffix):
        return False
    raise NeedsBuilder(
        f"/{target} may be a folder of the base: end the name of a folder with /, or let a file be called"
        f" {source.name}"
    )


def _sources(folder: Path, source: str) -> list[Path]:
    found = sorted(folder.glob(source.strip("/") or ".")) if source.strip("./") else [folder]
    if not found:
        raise FileNotFoundError(f"{NAME} copies {source}, which is not in {folder}")
    return found


def _add(recipe: Recipe, folder: Path, path: str, source: Path) -> None:
    """A file of the folder; a link of it must not lead out of the folder."""
    if source.is_symlink():
        raise NeedsBuilder(f"the symbolic link {source.relative_to(folder)}")
    if not source.resolve().is_relative_to(folder):
        raise FileNotFoundError(f"{NAME} copies {source}, which is not in {folder}")
    recipe.files[path.lstrip("/")] = source


def _inside(recipe: Recipe, path: str) -> str:
    """An absolute path of the image."""
    if not path.startswith("/") and not recipe.workdir:
        raise NeedsBuilder(f"{path} depends on the WORKDIR of the base")
    return posixpath.normpath(posixpath.join(recipe.workdir, path))


def _pairs(word: str, rest: str) -> dict[str, str]:
    """NAME=value, with quotes; or NAME value."""
    words = shlex.split(rest)
    if "=" not in words[0]:
        return {words[0]: rest.partition(" ")[2].strip()}
    pairs = [each.partition("=") for each in words]
    if not all(equal for _, equal, _ in pairs):
        raise NeedsBuilder(f"{word} {rest}")
    return {name: value for name, _, value in pairs}


def _words(rest: str) -> list[str]:
    """A list of words, or a line for a shell."""
    if rest.startswith("["):
        try:
            return [str(each) for each in json.loads(rest)]
        except ValueError:
            raise NeedsBuilder(f"{rest} is no list of words") from None
    return ["/bin/sh", "-c", rest]


_SETS: dict[str, Callable[[Recipe, str], None]] = {
    "FROM": _base,
    "WORKDIR": _workdir,
    "USER": _user,
}
