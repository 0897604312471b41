"""The command line: ``kantan-agents demo``, ``run``, ``agents``, ``tools`` and ``traces``.

Each command group has a package; ``terminal`` is shared. Importing the SDK takes seconds, so modules that
need it are imported inside the commands. ``--help`` and wrong arguments are answered at once.
"""
