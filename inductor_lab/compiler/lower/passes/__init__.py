"""Passes on loop programs."""
