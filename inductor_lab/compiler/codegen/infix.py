"""Operations that C++ and Triton both write as an infix operator."""

from __future__ import annotations

_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "logical_and": "&", "logical_or": "|",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
INFIX_TEXTS = {name: f"{{0}} {sign} {{1}}" for name, sign in _SIGNS.items()}
"""Operation → text."""
