"""The library's tables of durable runs, next to the engine's."""
