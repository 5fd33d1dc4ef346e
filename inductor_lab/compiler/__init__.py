"""The compiler.  `pipeline.py` is its table of contents, and each phase has a folder."""
