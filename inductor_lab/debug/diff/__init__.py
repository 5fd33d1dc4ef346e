"""`lab.diff`: the first stage in which two runs differ, for each compile."""
