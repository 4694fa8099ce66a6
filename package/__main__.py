"""The program of the package: Pulumi starts it as a process of its own, whatever the language of the program
that uses the package. So folders of that program cannot hide ours."""

import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
"""The checkout, whose packages the components are made of."""
sys.path[0] = str(HOME)

from package.provider import serve  # noqa: E402  (the path comes first)

serve()
