"""Charts as SVG, drawn by hand: the page may load nothing."""
