"""The loop IR: index arithmetic, expressions, programs; how they print and what they mean."""
