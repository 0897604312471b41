"""``kantan-agents models``: checks models, and lists the providers of this machine."""
