#!/usr/bin/env -S python3 -S
"""DeepSpeed's launcher for containers without it, with `--launcher openmpi` (deepspeed 0.17,
launcher/multinode_runner.py): mpirun on every slot of the hostfile.

Its default, pdsh, needs an sshd on every host, and the Trainer's launcher, which is a host, has none.
"""

import argparse
import sys

import mpirun


def main(words: list[str]) -> int:
    """mpirun's exit code."""
    parser = argparse.ArgumentParser(prog="deepspeed", allow_abbrev=False)
    parser.add_argument("-H", "--hostfile", default="/job/hostfile")
    parser.add_argument("--launcher", default="pdsh")
    parser.add_argument("--launcher_args", default="")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    asked = parser.parse_args(words)
    if asked.launcher.lower() != "openmpi":
        print("the rehearsal's deepspeed implements --launcher openmpi only", file=sys.stderr)
        return 1
    number = sum(slots for _, slots in mpirun.hosts(asked.hostfile))
    started = [sys.executable, "-u", asked.script, *asked.arguments]
    return mpirun.main(
        ["-n", str(number), "-hostfile", asked.hostfile, *asked.launcher_args.split(), *started]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
