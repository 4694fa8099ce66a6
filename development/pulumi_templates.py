"""`python -m development.pulumi_templates`: writes the templates of `pulumi new`, below
development/templates, from the files of `trainyard new`.

`pulumi new` asks for values right under `config:` only (pulumi 3.259,
pkg/cmd/pulumi/project/newcmd/config.go): for the region. All other answers are samples, which the person
changes in the stack file. The name of the project is fixed, and `pulumi new` proposes it: keys of the stack
file begin with it, and ${PROJECT} would put a line break behind it there
(pkg/cmd/pulumi/templates/project_templates.go).
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import yaml

from trainyard import command_line
from trainyard.catalog.versions import TRAINYARD
from trainyard.cli.new.new import write
from trainyard.cli.new.project import PROJECT_FILE, New
from trainyard.cli.new.questions import QUESTIONS, SOURCE

FOLDER = Path(__file__).with_name("templates")
KINDS = {
    "environment": "A training environment on AWS, by Trainyard",
    "team": "Training jobs of a team on an environment of Trainyard",
}
"""Kind of stack → description of its template. A team's is about the environment before it."""
REGION = next(question for question in QUESTIONS["environment"] if question.field == "region")


def main(arguments: list[str]) -> int:
    """Write them; 0."""
    parser = command_line.parser(
        "development.pulumi_templates", "Write the templates of `pulumi new`."
    )
    parser.add_argument(
        "--source",
        metavar="ADDRESS",
        default=f"git+https://example.com/trainyard@v{TRAINYARD}",
        help="address from which pip installs this release (%(default)s by default)",
    )
    options = parser.parse_args(arguments)
    shutil.rmtree(FOLDER, ignore_errors=True)
    for kind, files in templates(options.source).items():
        write(FOLDER / kind, files)
    return 0


def templates(source: str) -> dict[str, dict[str, str]]:
    """Kind of stack → files of its template."""
    made = dict[str, dict[str, str]]()
    with tempfile.TemporaryDirectory() as empty:
        folder = Path(empty)
        for kind in KINDS:
            answers = {question.field: question.sample for question in QUESTIONS[kind]}
            files = New(kind=kind, answers=answers | {SOURCE: source}, folder=folder).files()
            made[kind] = files | {PROJECT_FILE: _asking(files[PROJECT_FILE], kind)}
            write(folder, {name: text for name, text in files.items() if name == "Pulumi.dev.yaml"})
    return made


def _asking(project_file: str, kind: str) -> str:
    """The project file, with what `pulumi new` lists and asks."""
    question = {"description": REGION.asks, "default": REGION.sample}
    asks = {"description": KINDS[kind], "config": {"aws:region": question}}
    return project_file + yaml.safe_dump({"template": asks}, sort_keys=False)


if __name__ == "__main__":
    command_line.run(main)
