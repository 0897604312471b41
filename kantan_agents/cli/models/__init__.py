"""``kantan-agents models``: what a model can do, and which providers can be used on this machine."""
