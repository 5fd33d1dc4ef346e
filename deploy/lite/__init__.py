"""JupyterLite next to the docs: the course and a gallery in a browser, without an install."""
