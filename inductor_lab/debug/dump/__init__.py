"""`c.dump(folder)`: write the results of all stages to files."""
