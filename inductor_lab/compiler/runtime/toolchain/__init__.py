"""Find a C++ compiler, compile shared libraries and load them."""
