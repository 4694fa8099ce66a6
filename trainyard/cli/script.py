"""`python -m trainyard.cli.script`: prints the script `trainyard` of a checkout's virtual environment. It
works in any folder. `pip install` writes one of its own, from pyproject.toml.
"""

SCRIPT = """\
#!/bin/sh
'''exec' "$(dirname "$0")/python" "$0" "$@"
' '''
# Written by make. The lines above start the Python of this folder, also where its path has blanks.
from os.path import abspath, dirname
import sys

sys.path[0] = dirname(dirname(dirname(abspath(__file__))))
from trainyard.cli.main import main

main()
"""

if __name__ == "__main__":
    print(SCRIPT, end="")
