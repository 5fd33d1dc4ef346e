"""Shrink a graph that fails to the few nodes that make it fail."""
