"""Tables of names that saved files and pictures use, from torch or, without it, from stand-ins."""

from __future__ import annotations

from inductor_lab.compiler.torch_door.torch_types import INSTALLED

if INSTALLED:
    from inductor_lab.compiler.torch_door.torch_api import DTYPE_NAMES as DTYPE_NAMES
    from inductor_lab.compiler.torch_door.torch_api import SYMPY_FUNCTIONS as SYMPY_FUNCTIONS
else:
    from inductor_lab.compiler.torch_door.without_torch import DTYPE_NAMES as DTYPE_NAMES
    from inductor_lab.compiler.torch_door.without_torch import SYMPY_FUNCTIONS as SYMPY_FUNCTIONS
