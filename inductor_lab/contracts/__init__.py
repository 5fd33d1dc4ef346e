"""Compile contracts: tests of what the compiler makes of a call, by counts, never by times.

    @lab.compiles(graphs=1, breaks=0, kernels=1, agrees="eager")
    def test_softmax():
        yield softmax, torch.randn(8, 128)

`facts.py` counts, `conditions.py` compares, `contract.py` has the decorator, and `plugin.py` adds
`--compile-snapshot` to pytest.
"""
