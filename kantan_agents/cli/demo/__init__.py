"""``kantan-agents demo``: the main job from end to end."""
