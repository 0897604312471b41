"""``Approve``: human approval of tool calls, and storing and resuming the runs that wait for it."""
