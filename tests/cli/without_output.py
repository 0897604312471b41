"""Becomes ``kantan-agents`` without standard output; the first argument names what to close: ``1,2``."""

from __future__ import annotations

import os
import sys

from kantan_agents.cli.app import main

for number in sys.argv[1].split(","):
    os.close(int(number))
    # As the interpreter does when it starts so.
    name = ("stdin", "stdout", "stderr")[int(number)]
    setattr(sys, name, None)
    setattr(sys, f"__{name}__", None)
del sys.argv[1]
main()
