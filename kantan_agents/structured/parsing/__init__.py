"""The JSON of a reply: three steps to the letter, then tolerantly."""
