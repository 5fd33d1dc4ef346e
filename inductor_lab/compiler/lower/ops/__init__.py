"""Lowerings, one file for each family of operators."""
