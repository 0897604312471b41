"""How a model is asked for an output of a schema, and what becomes of its replies."""
