"""Shrink a failing graph to the few nodes that make it fail."""
