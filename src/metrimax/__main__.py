"""``python -m metrimax``: the command."""

import sys

from metrimax.cli import main

if __name__ == "__main__":
    sys.exit(main())
