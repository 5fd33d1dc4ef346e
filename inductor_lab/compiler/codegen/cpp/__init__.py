"""The C++ printer."""
