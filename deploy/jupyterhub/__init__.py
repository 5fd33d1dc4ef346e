"""A class on JupyterHub: its configuration, and how many students a machine bears."""
