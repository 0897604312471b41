"""Names of spans that one package writes and another one reads."""

REFUSAL_SPAN = "tool_refused"
"""Name of the ``custom`` span of a call that the tool rules refuse."""
