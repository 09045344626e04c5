"""`python -m headway`, for children of the demo and environments without the console script."""

import sys

from headway.cli import main

if __name__ == "__main__":
    sys.exit(main())
