"""Step through a call, edit a kernel, compare options."""
