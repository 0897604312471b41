"""What every experiment has: its agents, prices and budget, its work, and where its runs are recorded."""
