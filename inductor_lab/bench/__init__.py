"""Timing that can be trusted."""
