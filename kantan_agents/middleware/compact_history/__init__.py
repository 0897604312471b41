"""``CompactHistory``: shorten requests that would become too long."""
