"""The Triton printer."""
