"""Published comparisons repeated at a small size, each with a verdict that is computed from its numbers."""
