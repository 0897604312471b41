"""The command line: ``kantan-agents demo``, ``run``, ``agents``, ``tools`` and ``traces``.

One file per command, and one per thing both need. What imports the SDK, a matter of seconds, is
imported inside the commands, so that ``--help`` and mistakes in the arguments are answered at once.
"""
