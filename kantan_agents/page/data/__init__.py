"""The page's content as JSON data, independent of HTTP."""
