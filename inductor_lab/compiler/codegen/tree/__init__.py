"""The loop tree: built from a group, printed, verified and interpreted."""
