"""``Approve``: human approval of tool calls; paused runs can be stored and resumed."""
