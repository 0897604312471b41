"""What is recorded of a run, and where; the trace database itself is kantan-llm's.

Nothing is imported here: who reads a database (``store``) need not wait for the SDK.
"""
