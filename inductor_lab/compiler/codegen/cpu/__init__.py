"""What makes a loop tree fast on a CPU: passes, a file each, and their list in `passes.py`."""
