"""``LimitConcurrency``: limits and orders concurrent model calls or runs."""
