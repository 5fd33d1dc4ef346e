"""Passes on the graph that TorchDynamo captured."""
