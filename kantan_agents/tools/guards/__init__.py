"""Guards: each kind of tool applies the tool rules when it is called."""
