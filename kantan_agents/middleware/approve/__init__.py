"""``Approve``: tool calls that a person must approve, and runs that wait for the decision."""
