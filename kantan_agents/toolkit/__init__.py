"""Ready-made tools under the names that agent files use."""
