"""``LimitConcurrency``: how many model calls or runs are made at the same time, and in which order."""
