"""A class on JupyterHub: its configuration, and a load test."""
