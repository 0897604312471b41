"""What every package may use: checked numbers, plain data, connections, waiting for tasks, loggers."""
