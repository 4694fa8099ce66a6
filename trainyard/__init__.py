"""From an AWS account to a distributed training job that runs: the brain of the program, and the tool."""

from pathlib import Path

__version__ = "0.2.0"
_IN_WHEEL = Path(__file__).parent / "_program"
HOME = _IN_WHEEL if _IN_WHEEL.exists() else Path(__file__).parents[1]
"""Folder of the program's `__main__.py` with its packages: in a wheel the folder that development/wheel.py
fills, elsewhere the checkout."""
