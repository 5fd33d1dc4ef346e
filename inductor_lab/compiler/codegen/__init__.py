"""Groups to text: C++, Triton, and the host program that calls them."""
