"""The command line ``kantan-agents``, one package for each command group.

Importing the SDK takes seconds, so modules that need it are imported inside the commands. ``--help`` and
invalid arguments respond immediately. Commands raise the library's errors; ``app.invoke`` turns each into one
line and an exit code.
"""
