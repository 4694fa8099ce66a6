"""`make bench`: every measurement, one after the other, each with its comparison from the same
minutes."""

from benchmarks import check, crowd, destroy, estate, manifests, program
from trainyard import command_line


def main(arguments: list[str]) -> int:
    """Run them all; 0."""
    command_line.parser(
        "benchmarks", "Run every measurement, each beside its comparison."
    ).parse_args(arguments)
    for module in (check, manifests, estate, program, destroy, crowd):
        module.main([])
    return 0


if __name__ == "__main__":
    command_line.run(main)
