"""A Dockerfile without RUN: what of it becomes a layer, and what only a builder can do."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from trainyard.operations.images.dockerfile import NeedsBuilder, layer, read

BASE = "registry.example.com/torch:2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("train.py", "lib/model.py", "lib/data/set.py", "run.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "run.sh").chmod(0o755)
    return tmp_path


def written(folder: Path, *lines: str) -> Path:
    (folder / "Dockerfile").write_text("\n".join((f"FROM {BASE}", *lines)))
    return folder


def members(folder: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(layer(read(folder)))) as tar:
        return {each.name: each for each in tar.getmembers()}


def files(folder: Path) -> set[str]:
    return {name for name, each in members(folder).items() if each.isfile()}


COPIES = {
    "COPY train.py /workspace/": {"workspace/train.py"},
    "COPY train.py /opt/run.py": {"opt/run.py"},
    "COPY run.sh /opt/settings.cfg": {"opt/settings.cfg"},
    "COPY lib/data/set.py /opt/set.py": {"opt/set.py"},
    "WORKDIR /workspace/run\nCOPY train.py /workspace": {"workspace/train.py"},
    "WORKDIR /w\nCOPY train.py /w": {"w/train.py"},
    "COPY lib /opt/lib\nCOPY train.py /opt": {
        "opt/lib/model.py",
        "opt/lib/data/set.py",
        "opt/train.py",
    },
    "COPY lib /opt\nCOPY train.py /opt/data": {
        "opt/model.py",
        "opt/data/set.py",
        "opt/data/train.py",
    },
    "COPY train.py run.sh /workspace": {"workspace/train.py", "workspace/run.sh"},
    "COPY lib /opt/lib": {"opt/lib/model.py", "opt/lib/data/set.py"},
    "COPY lib/data/ /opt/": {"opt/set.py"},
    "COPY *.py /w/": {"w/train.py"},
    'COPY ["train.py", "/w/a b.py"]': {"w/a b.py"},
    "WORKDIR /w\nCOPY train.py .": {"w/train.py"},
    "WORKDIR /w\nWORKDIR in\nCOPY train.py other.py": {"w/in/other.py"},
    "ARG NAME=train.py\nCOPY ${NAME} /w/": {"w/train.py"},
    "COPY \\\n  # a comment\n  train.py \\\n  /w/": {"w/train.py"},
}


@pytest.mark.parametrize("lines", COPIES)
def test_a_copy_puts_files_where_docker_puts_them(lines: str, folder: Path) -> None:
    assert files(written(folder, lines)) == COPIES[lines]


def test_a_whole_folder_is_copied_with_its_dockerfile_as_docker_does(folder: Path) -> None:
    assert files(written(folder, "COPY . /workspace/")) == {
        f"workspace/{name}"
        for name in ("Dockerfile", "train.py", "run.sh", "lib/model.py", "lib/data/set.py")
    }


def test_the_same_files_are_the_same_layer_whoever_made_them_when(folder: Path) -> None:
    before = layer(read(written(folder, "COPY . /w/")))
    os.utime(folder / "train.py", (0, 0))
    (folder / "train.py").chmod(0o600)
    assert layer(read(folder)) == before
    (folder / "train.py").write_text("other")
    assert layer(read(folder)) != before


def test_a_program_stays_one_and_only_an_empty_folder_is_written(folder: Path) -> None:
    """A folder of the base, such as /tmp, keeps its rights."""
    (folder / "lib/empty").mkdir()
    found = members(written(folder, "COPY run.sh train.py /tmp/", "COPY lib /tmp/lib"))
    assert (found["tmp/run.sh"].mode, found["tmp/train.py"].mode) == (0o755, 0o644)
    assert [name for name, each in found.items() if each.isdir()] == ["tmp/lib/empty"]
    assert {(each.uid, each.mtime) for each in found.values()} == {(0, 0)}


def test_what_an_image_says_of_itself_is_kept(folder: Path) -> None:
    recipe = read(
        written(
            folder,
            'ENV A="x y" B=1',
            "ENV C of old",
            "ENV D=$B-2",
            "LABEL team=nlp",
            "USER 1000",
            'ENTRYPOINT ["torchrun", "--nnodes=2"]',
            "CMD train.py",
        )
    )
    assert recipe.base == BASE and recipe.user == "1000" and recipe.labels == {"team": "nlp"}
    assert recipe.env == {"A": "x y", "B": "1", "C": "of old", "D": "1-2"}
    assert recipe.entrypoint == ["torchrun", "--nnodes=2"]
    assert recipe.command == ["/bin/sh", "-c", "train.py"]


NEEDS = {
    "RUN pip install x": "RUN runs in a container",
    "COPY --from=other /a /b": "COPY --from=other",
    "COPY --chown=1 train.py /w/": "COPY --chown=1",
    "ADD https://example.com/a /a": "ADD",
    "FROM other": "more stages than one",
    "COPY train.py /workspace": "/workspace may be a folder of the base",
    "COPY train.py /usr/lib/python3.11": "/usr/lib/python3.11 may be a folder of the base",
    "COPY run.sh /etc/profile.d": "end the name of a folder with /",
    "COPY train.py .": "depends on the WORKDIR of the base",
    "ENV PATH=/opt:$PATH": "$PATH has no value",
    "ENV A=${B:-c}": "in another form than $NAME",
    "COPY <<EOF /a\nx\nEOF": "text of its own",
    "HEALTHCHECK NONE": "HEALTHCHECK",
    "# escape=`": "another escape character",
}


@pytest.mark.parametrize("line", NEEDS)
def test_everything_else_needs_a_builder_and_says_what(line: str, folder: Path) -> None:
    with pytest.raises(NeedsBuilder) as needed:
        read(written(folder, line))
    assert NEEDS[line] in str(needed.value)


def test_files_that_are_left_out_are_left_to_a_builder(folder: Path) -> None:
    (folder / ".dockerignore").write_text("secrets\n")
    with pytest.raises(NeedsBuilder, match="dockerignore"):
        read(written(folder, "COPY . /w/"))


def test_no_file_outside_of_the_folder_is_copied(folder: Path) -> None:
    (folder / "inside").mkdir()
    for line in ("COPY ../train.py /w/", "COPY ../* /w/", "COPY absent.py /w/"):
        with pytest.raises(FileNotFoundError, match="not in"):
            read(written(folder / "inside", line))
    (folder / "inside/link.py").symlink_to(folder / "train.py")
    with pytest.raises(NeedsBuilder, match=r"link\.py"):
        read(written(folder / "inside", "COPY link.py /w/"))
