"""What three or more packages need: checked arguments, secrets in texts, private files, waiting, loggers."""
