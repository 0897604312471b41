"""``kantan-agents models``: checks models and providers."""
