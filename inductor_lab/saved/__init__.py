"""Save compilations to files and load them."""
