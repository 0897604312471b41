"""``LimitConcurrency``: limits concurrent model calls or runs."""
