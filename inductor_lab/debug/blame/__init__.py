"""`lab.blame`: find the first stage, value and line that is wrong."""
