"""Decompositions: operators in terms of simpler operators."""
