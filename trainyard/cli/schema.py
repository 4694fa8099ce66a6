"""`trainyard schema`: the JSON schema of stack files, or their reference."""

from __future__ import annotations

import argparse
import json

from trainyard.reports.reference import page
from trainyard.settings.reading.reader import json_schema


def main(options: argparse.Namespace) -> int:
    """Print it; 0."""
    print(page() if options.reference else f"{json.dumps(json_schema(), indent=1)}\n", end="")
    return 0
