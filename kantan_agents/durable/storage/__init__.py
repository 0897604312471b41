"""The stored data of durable runs, in tables of this library next to the engine's."""
