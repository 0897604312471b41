"""One module per framework: how its user writes the agents that are measured."""
