"""`python -m inductor_lab`: the command `inductor-lab`."""

import sys

from inductor_lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
