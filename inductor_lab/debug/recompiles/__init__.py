"""`lab.recompiles`: what is compiled while a program runs, and why."""
