"""`%%compile`: which calls of a cell are compiled, and how errors are reported."""
