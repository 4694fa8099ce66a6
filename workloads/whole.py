"""Names the newest checkpoint in a folder that is whole, before a run resumes from it.

    python3 whole.py $CHECKPOINT_DIR            prints its path; 1 where none is whole
    python3 whole.py $CHECKPOINT_DIR --aside    and renames newer ones that are not: broken-<name>

It needs only Python and reads no tensor, so terabytes take seconds. It knows torch's distributed
checkpoints (.metadata and *.distcp), safetensors and what torch.save writes; those of transformers,
torchtitan, Megatron-LM and DeepSpeed are folders of these.
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

METADATA, SHARDS, INDEX = ".metadata", "*.distcp", "*.safetensors.index.json"
SAVED_BY_TORCH = (".pt", ".pth", ".bin", ".ckpt")
LONGEST_HEADER = 100 << 20
"""Bytes of a header that safetensors itself takes."""
BROKEN = "broken-"


class Damaged(Exception):
    """Why a checkpoint is not whole."""


class Anything:
    """An object of a class that is not here: its state, and none of its code."""

    def __new__(cls, *_: Any, **__: Any) -> Anything:
        return object.__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state if isinstance(state, dict) else {})

    def __setitem__(self, *_: Any) -> None:
        pass


class Harmless(pickle.Unpickler):
    """Reads what a pickle holds and runs nothing of it."""

    def find_class(self, module: str, name: str) -> Any:
        return type(name, (Anything,), {})


def main(arguments: list[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description="Name the newest whole checkpoint of a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--aside", action="store_true", help="rename newer ones that are not whole")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        print(f"{options.folder} is no folder", file=sys.stderr)
        return 1
    for found in newest_first(options.folder):
        try:
            check(found)
        except (Damaged, OSError, ValueError, EOFError, pickle.UnpicklingError) as error:
            print(f"{found.name} is not whole: {error}", file=sys.stderr)
            if options.aside:
                _aside(found)
            continue
        print(found)
        return 0
    print(f"{options.folder} has no whole checkpoint", file=sys.stderr)
    return 1


def newest_first(folder: Path) -> list[Path]:
    """The checkpoints, by the last number in their names, then by their times."""
    found = [each for each in folder.iterdir() if not each.name.startswith((BROKEN, "."))]
    return sorted(filter(_is_checkpoint, found), key=_age, reverse=True)


def check(checkpoint: Path) -> None:
    """Damaged, or what reading it raises, where it is not whole."""
    files = [checkpoint] if checkpoint.is_file() else [*_files(checkpoint)]
    for file in files:
        if file.suffix == ".safetensors":
            _safetensors(file)
        elif file.name.endswith(INDEX.strip("*")):
            _index(file)
        elif file.suffix in SAVED_BY_TORCH:
            _saved_by_torch(file)
    for place in {file.parent for file in files if file.match(SHARDS) or file.name == METADATA}:
        _distributed(place)


def _is_checkpoint(path: Path) -> bool:
    """Whether it holds anything of a kind that is known."""
    files = _files(path) if path.is_dir() else [path]
    return any(
        file.suffix in (".distcp", ".safetensors", *SAVED_BY_TORCH) or file.name == METADATA
        for file in files
    )


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*")) if file.is_file())


def _age(path: Path) -> tuple[int, float]:
    numbers = re.findall(r"\d+", path.stem)
    return int(numbers[-1]) if numbers else -1, path.stat().st_mtime


def _distributed(place: Path) -> None:
    """torch writes .metadata last, by a rename. It names the bytes of each shard."""
    if not (place / METADATA).exists():
        raise Damaged(f"{place.name} has no {METADATA}: the save did not end")
    for name, end in {**dict.fromkeys(_names(place), 1), **_ends(place / METADATA)}.items():
        _has(place / name, end)


def _names(place: Path) -> Iterator[str]:
    return (shard.name for shard in place.glob(SHARDS))


def _ends(metadata: Path) -> dict[str, int]:
    """Name of a shard → bytes that it must have; none of a release of torch that writes them otherwise."""
    found: dict[str, int] = {}
    with metadata.open("rb") as file:
        try:
            for part in Harmless(file).load().storage_data.values():
                end = part.offset + part.length
                found[part.relative_path] = max(found.get(part.relative_path, 0), end)
        except (AttributeError, TypeError):
            return {}
    return found


def _safetensors(file: Path) -> None:
    """A length, a header of JSON, and the tensors it names."""
    with file.open("rb") as data:
        length = int.from_bytes(data.read(8), "little")
        if not 2 <= length <= LONGEST_HEADER:
            raise Damaged(f"{file.name} has no header")
        header = json.loads(data.read(length))
    ends = [each["data_offsets"][1] for name, each in header.items() if name != "__metadata__"]
    _has(file, 8 + length + max(ends, default=0))


def _index(file: Path) -> None:
    for name in {*json.loads(file.read_text())["weight_map"].values()}:
        _has(file.parent / name, 1)


def _saved_by_torch(file: Path) -> None:
    """A zip, whose directory is at its end."""
    if not zipfile.is_zipfile(file):
        raise Damaged(f"{file.name} ends before its directory")
    with zipfile.ZipFile(file) as parts:
        if not parts.namelist():
            raise Damaged(f"{file.name} is empty")


def _has(file: Path, size: int) -> None:
    there = file.stat().st_size if file.exists() else None
    if there is None or there < size:
        has = "is not there" if there is None else f"has {there} bytes of {size}"
        raise Damaged(f"{file.name} {has}")


def _aside(checkpoint: Path) -> None:
    """Other nodes may do the same at this moment."""
    try:
        checkpoint.rename(checkpoint.with_name(BROKEN + checkpoint.name))
    except FileNotFoundError:
        return
    print(f"{checkpoint.name} is now {BROKEN}{checkpoint.name}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
