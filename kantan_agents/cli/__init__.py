"""The command line ``kantan-agents``, with a package per command group; ``terminal`` is shared.

Importing the SDK takes seconds, so modules that need it are imported inside the commands. ``--help`` and
invalid arguments respond immediately. Commands raise the library's errors; ``app.invoke`` turns each into one
line and an exit code.
"""
