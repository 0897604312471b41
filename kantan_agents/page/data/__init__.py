"""The page's content as JSON data, without HTTP."""
