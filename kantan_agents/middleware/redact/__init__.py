"""``Redact``: keeps addresses, numbers and other secrets out of models, answers and traces."""
