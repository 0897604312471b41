"""``Budget``: limits on calls, tokens and cost, shared by any number of runs."""
