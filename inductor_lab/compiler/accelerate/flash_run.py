"""Loads and calls the kernels of an attention call (`flash.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import sympy
import torch
from torch import Tensor

from inductor_lab.compiler.base.errors import DividedByZero, IndexOutOfRange
from inductor_lab.compiler.codegen.attention.attention_call import Operand
from inductor_lab.compiler.codegen.cpp.printer import translation_unit
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.triton.blocks import INT32_REACH
from inductor_lab.compiler.ir.higher_order import OneKernel, Written
from inductor_lab.compiler.ir.index import Size
from inductor_lab.compiler.ir.interpret import concrete
from inductor_lab.compiler.ir.program import Layout
from inductor_lab.compiler.runtime.executable import cpp_function
from inductor_lab.compiler.runtime.toolchain.background_compile import BackgroundValue
from inductor_lab.compiler.runtime.toolchain.shared_library import library_builder

MOST_KERNELS = 256
"""The maximum number of cached kernels, which equal layers share."""
MOST_SIZES = 64
"""The maximum number of sizes for which a call with symbolic sizes caches the numbers."""


@dataclass(frozen=True, eq=False)
class Flash(Written):
    """The kernels of a call, in order.

    given     its inputs, by name and in order
    made      the outputs of the kernels
    results   the names of outputs that are returned
    absent    the number of results that are None, after these
    reached   pairs of a number of rows, and the number of rows that the lists of blocks cover
    place     the user's line
    """

    kernels: tuple[Kernel, ...]
    given: Mapping[str, Operand]
    made: Mapping[str, Operand]
    results: tuple[str, ...]
    absent: int
    reached: tuple[tuple[Size, Size], ...]
    place: str

    def __str__(self) -> str:
        return "\n\n".join(str(kernel) for kernel in self.kernels)

    def begin(self) -> None:
        """Start to compile the kernels in threads."""
        _ = self.launches

    @cached_property
    def launches(self) -> tuple[Callable[..., None], ...]:
        return tuple(map(_loaded, map(_ByText.of, self.kernels)))

    def ready(self) -> None:
        for launch in self.launches:
            if isinstance(launch, _Cpp):
                launch.function.wait()

    @cached_property
    def symbol_sources(self) -> Mapping[sympy.Symbol, tuple[int, int]]:
        """Maps each symbol to the input and the dimension whose size it is."""
        shapes = (operand.shape for operand in self.given.values())
        return {size: (n, dim) for n, shape in enumerate(shapes) for dim, size in enumerate(shape)
                if isinstance(size, sympy.Symbol)}  # fmt: skip

    def binds_all_symbols(self) -> bool:
        """Do the sizes of the inputs bind all symbols?"""
        bound = self.symbol_sources.keys()
        used: list[Size] = [p.symbol for k in self.kernels for p in k.parameters if p.symbol]
        used += [n for operand in self.made.values() for n in (*operand.shape, *operand.stride)]
        used += [n for pair in self.reached for n in pair]
        return all(n.free_symbols <= bound for n in used if not isinstance(n, int))

    def one_kernel(self) -> OneKernel | None:
        if len(self.kernels) != 1 or len(self.results) != 1 or self.symbol_sources:
            return None
        (kernel,), (launch,), (made,) = self.kernels, self.launches, self.results
        if not isinstance(launch, _Cpp) or any(p.symbol is not None for p in kernel.parameters):
            return None
        ((size, stride),) = self._sizes()[0].values()
        layout, names = (tuple(size), tuple(stride)), tuple(p.name for p in kernel.parameters)
        return OneKernel(tuple(self.given), made, layout, names, launch.function.wait, self.failed)

    def failed(self, function: Any, status: int) -> None:
        with self._at_place():
            function.errcheck(status, function, ())

    @contextmanager
    def _at_place(self) -> Iterator[None]:
        """Give errors of kernels the user's line."""
        try:
            yield
        except (DividedByZero, IndexOutOfRange) as found:
            raise type(found)(found.what, self.place) from None

    def __call__(self, *given: Tensor) -> tuple[Any, ...]:
        tensors = dict(zip(self.given, given, strict=True))
        sources = self.symbol_sources.values()
        sizes, numbers = self.sizes(*(given[n].shape[dim] for n, dim in sources))
        if sources and not all(is_short(t.shape[2:], t.stride()[2:]) for t in given):
            raise IndexOutOfRange("an attention head has 2**31 elements or more", self.place)
        for name, (size, stride) in sizes.items():
            dtype, device = self.made[name].dtype, given[0].device
            tensors[name] = torch.empty_strided(size, stride, dtype=dtype, device=device)
        with self._at_place():
            for kernel, more, launch in zip(self.kernels, numbers, self.launches, strict=True):
                launch(*(tensors[p.name] for p in kernel.parameters if p.symbol is None), *more)
        return (*(tensors[name] for name in self.results), *[None] * self.absent)

    @cached_property
    def sizes(self) -> Callable[..., tuple[dict[str, Any], list[list[int]]]]:
        """A function of the values of the symbols.

        It returns the sizes and strides of the outputs, and the number arguments of each kernel.
        """
        return lru_cache(MOST_SIZES)(self._sizes)

    def _sizes(self, *values: int) -> tuple[dict[str, Any], list[list[int]]]:
        symbols = dict(zip(self.symbol_sources, values, strict=True))

        def known(numbers: Iterable[Size]) -> list[int]:
            return [concrete(n, symbols) for n in numbers]

        for rows, listed in map(known, self.reached):
            if rows > listed:
                said = f"a block mask for {listed} rows does not cover all {rows}"
                raise IndexOutOfRange(said, self.place)
        made = {name: (known(m.shape), known(m.stride)) for name, m in self.made.items()}
        asked = ((p.symbol for p in k.parameters if p.symbol is not None) for k in self.kernels)
        return made, list(map(known, asked))


@dataclass(frozen=True)
class _ByText:
    """A kernel, compared by its text, types and launch settings."""

    text: str
    about: tuple[Any, ...]
    kernel: Kernel = field(compare=False)

    @staticmethod
    def of(kernel: Kernel) -> _ByText:
        types = tuple((p.name, p.dtype, p.symbol) for p in kernel.parameters)
        return _ByText(str(kernel), (types, kernel.device, repr(kernel.launch)), kernel)


@lru_cache(MOST_KERNELS)
def _loaded(of: _ByText) -> Callable[..., None]:
    if of.kernel.language == "cpp":
        return _loaded_cpp(of.kernel)
    from inductor_lab.compiler.runtime.triton.launch import load_kernel

    return load_kernel(of.kernel)


@dataclass(frozen=True)
class _Cpp:
    """A C++ kernel that is called with tensors and numbers."""

    function: BackgroundValue[Callable[..., None]]

    def __call__(self, *given: Tensor | int) -> None:
        self.function.wait()(*(n if isinstance(n, int) else n.data_ptr() for n in given))


def _loaded_cpp(kernel: Kernel) -> _Cpp:
    build = library_builder(translation_unit([kernel]), kernel.name)
    return _Cpp(BackgroundValue(lambda: cpp_function(build(), [kernel], {})))


def is_short(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Do the indices of elements fit in 32 bits?"""
    reach = Layout(tuple(shape), tuple(stride)).storage_size
    return isinstance(reach, int) and reach < INT32_REACH
