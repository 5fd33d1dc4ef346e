"""The docs as a site, made from the files that are read without it: `make docs`."""
