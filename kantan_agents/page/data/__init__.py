"""What the page shows, as JSON data: no code here knows of HTTP."""
