"""Passes that optimize a loop tree for a CPU, one per file; `passes.py` lists them."""
