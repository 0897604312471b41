"""Charts as SVG without a library: the page may load nothing."""
