"""Models: from the name in ``Agent(model=...)`` to an SDK model, its HTTP client and its typed answers."""
