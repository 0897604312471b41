"""The common parts of experiments: agents, prices, budget, work, and recording."""
