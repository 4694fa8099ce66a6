"""From an AWS account to a distributed training job that runs: the brain of the program, and the tool."""

__version__ = "0.2.0"
