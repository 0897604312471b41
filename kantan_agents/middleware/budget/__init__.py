"""``Budget``: limits on calls, tokens and cost."""
