"""`lab.advise`: edits of a program that were tried and that reduce its recompiles."""
