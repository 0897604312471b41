"""The common parts of experiments: agents, prices, budget, work, and the database of their runs."""
