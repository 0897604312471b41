"""One module per framework, with the measured agents as its users would write them."""
