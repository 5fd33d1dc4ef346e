"""Everything a user could choose instead of inductor_lab on a CPU: `python -m benchmarks.peers`.

workloads.py  models for inference, and kernels
systems.py    the systems: how each prepares a workload, and what it calls
worker.py     one system and one workload in a separate process
floor.py      the least time that a workload can take with the best products of any system
results.py    the measurements as tables
__main__.py   interleaves the rounds of all systems, and compares their results with float64
"""
