"""Tool providers: installed distributions that declare tools and rules as entry points."""
