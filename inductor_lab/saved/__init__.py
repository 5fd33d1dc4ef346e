"""Compilations as files: what `save` writes and `load` reads."""
