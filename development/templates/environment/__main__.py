"""The program of Trainyard. Its release stands in requirements.txt, what it makes in Pulumi.dev.yaml."""

from trainyard.cli.program import run

run()
