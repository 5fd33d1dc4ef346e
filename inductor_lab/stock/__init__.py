"""Stock TorchInductor, for comparison: the only package that imports `torch._inductor`."""
