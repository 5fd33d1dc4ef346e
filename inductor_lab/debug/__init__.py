"""Tools that find wrong results and measure time: blame, comparison of backends, the minifier,
seeded faults, stepping, profiles."""
