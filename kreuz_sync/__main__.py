"""`python -m kreuz_sync` is the command `kreuz-sync`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
