"""The imports of the process server for `test_missing_names`: everything of torch that the compiler
uses, and TorchDynamo after its first compile."""

from __future__ import annotations

import torch

from inductor_lab.compiler.torch_door import torch_names

NAMES = sorted({name for f in torch_names.OPTIONAL.values() for name in f.names})
torch.compile(lambda x: x.sin() + 1, backend="aot_eager")(torch.ones(3))
