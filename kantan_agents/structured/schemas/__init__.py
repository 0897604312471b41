"""What an output must be: schemas of types, their form on the wire, and what is wrong with a value."""
