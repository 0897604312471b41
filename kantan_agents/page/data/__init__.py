"""The content as JSON data, without HTTP."""
