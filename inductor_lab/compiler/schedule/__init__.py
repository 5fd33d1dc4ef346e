"""From loop programs to schedules: which nests become one kernel, and the memory plan."""
