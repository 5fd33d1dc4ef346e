"""Copy, flatten, perturb and compare values of a call."""
