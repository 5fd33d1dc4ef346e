"""Who is wrong, and where the time goes: blame, the ladder of backends, the minifier, seeded
faults, stepping, profiles."""
