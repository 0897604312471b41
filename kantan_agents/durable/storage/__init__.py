"""What is stored of durable runs, in tables of this library beside those of the engine."""
