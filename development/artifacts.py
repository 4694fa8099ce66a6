"""Files of a release: the wheel, the source distribution, and the component package with all that it imports.

The tag must be that of the version: `python -m development.artifacts v0.2.0 dist` writes them into dist, and
prints the section of CHANGELOG.md, which the release has as its notes.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from development.wheel import CHECKOUT, build_sdist, build_wheel
from trainyard import __version__, command_line

PACKAGE = ("package", "components", "stacks", "trainyard", "requirements.txt", "LICENSE")
"""Parts of a checkout that `pulumi package add` needs."""


def main(arguments: list[str]) -> int:
    """0 where every file is written."""
    parser = command_line.parser("development.artifacts", "Build the files of a release.")
    parser.add_argument("tag", help="the tag of the release, such as v0.2.0")
    parser.add_argument("folder", type=Path, help="where to write them")
    options = parser.parse_args(arguments)
    if options.tag != f"v{__version__}":
        print(f"tag: must be v{__version__}, the version of the program; got {options.tag}")
        return 1
    options.folder.mkdir(parents=True, exist_ok=True)
    build(options.folder)
    print(notes((CHECKOUT / "CHANGELOG.md").read_text(), __version__))
    return 0


def build(folder: Path) -> None:
    """Write the files into a folder."""
    build_wheel(str(folder))
    build_sdist(str(folder))
    name = f"trainyard-package-{__version__}"
    archive = ["git", "archive", f"--prefix={name}/", f"--output={folder.resolve()}/{name}.tar.gz"]
    subprocess.run([*archive, "HEAD", *PACKAGE], cwd=CHECKOUT, check=True)


def notes(changelog: str, version: str) -> str:
    """The section of a version, without its head."""
    section = changelog.partition(f"\n## {version} ")[2].partition("\n## ")[0]
    return section.partition("\n")[2].strip()


if __name__ == "__main__":
    command_line.run(main)
