"""The compiler: `pipeline.py` is its table of contents, with one folder for each phase."""
