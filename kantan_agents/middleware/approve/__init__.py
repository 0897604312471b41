"""``Approve``: human approval of tool calls."""
