"""From a Python function to FX graphs: what TorchDynamo captured, and how it got there."""
