"""The loop tree: build it from a group, print it, verify it and interpret it."""
