"""`c.dump(folder)`: what was made, as files."""
