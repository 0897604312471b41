"""``python -m kantan_agents``: the command line, for an environment whose scripts are not on the PATH."""

import os
import sys
from contextlib import suppress

# Python has put the working directory there. A file in it must not shadow a module.
with suppress(OSError):
    if sys.path[0] in ("", os.getcwd()) and not getattr(sys.flags, "safe_path", False):  # noqa: PTH109
        del sys.path[0]

from kantan_agents.cli.app import main

if __name__ == "__main__":
    main()
