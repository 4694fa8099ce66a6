"""The program of Trainyard. Its release stands in requirements.txt, what it makes in Pulumi.team-vision.yaml."""

from trainyard.cli.program import run

run()
