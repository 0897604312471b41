"""What three or more packages need: checked arguments, a ledger, secrets in texts, private files, waiting, loggers."""
