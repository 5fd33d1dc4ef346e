"""Passes on ATen graphs, one per file; `rewrite/passes.py` lists them."""
