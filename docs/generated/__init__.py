"""The generated parts of the reference pages: each module has ``markdown()``, a pure function of the code."""
