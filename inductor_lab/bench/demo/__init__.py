"""The main job: eight real programs, compiled, checked against eager, timed and reported."""
