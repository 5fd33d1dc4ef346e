"""From FX graphs to loop programs: one small function for each operator, grouped by family."""
