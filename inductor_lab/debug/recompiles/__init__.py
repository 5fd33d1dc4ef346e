"""`lab.recompiles`: report what is compiled while a program runs, and why."""
