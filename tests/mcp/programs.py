"""Twenty programs to ask about.  A comment marks the line that is the answer to a question."""

from __future__ import annotations

PROGRAMS = {
    "softmax": """
def f(x):
    y = x.softmax(-1)
    return y * 2

def example_inputs():
    return torch.randn(64, 128)
""",
    "attend": """
def f(q, k):
    scores = (q @ k.T).softmax(-1)
    return (scores * 2).sum(0)

def example_inputs():
    return torch.randn(64, 32), torch.randn(64, 32)
""",
    "big_line": """
def f(small, large):
    a = small.sin()
    b = (large.cos() + 1).cumsum(0)  # most traffic
    return a, b

def example_inputs():
    return torch.randn(8), torch.randn(512, 128)
""",
    "big_product": """
def f(x, w, b):
    h = x @ w  # most traffic
    return (h[0] + b).relu()

def example_inputs():
    return torch.randn(256, 256), torch.randn(256, 256), torch.randn(256)
""",
    "two_sizes": """
def f(x, y):
    return x.exp() + 1, y.tanh()

def example_inputs():
    return torch.randn(128), torch.randn(77, 3)
""",
    "break_print": """
def f(x):
    y = x.sin()
    print("a graph break")  # breaks
    return y.cos()

def example_inputs():
    return torch.randn(16)
""",
    "break_item": """
def f(x):
    y = x * 2
    if y.sum() > 0:  # breaks
        return y + 1
    return y - 1

def example_inputs():
    return torch.ones(16)
""",
    "scale": """
def f(x):
    return x * 3 + 1

def example_inputs():
    return torch.randn(4, 10)
""",
    "batch": """
def f(x, w):
    return (x @ w).relu().sum()

def example_inputs():
    return torch.randn(2, 8), torch.randn(8, 8)
""",
    "flag": """
def f(x, scale):
    return x.sin() * scale

def example_inputs():
    return torch.randn(10), 2.5
""",
    "dtype": """
def f(x):
    return (x + 1).abs()

def example_inputs():
    return torch.randn(12)
""",
    "train": """
def f(x, w):
    h = (x @ w).sigmoid()
    return (h * h).sum()

def example_inputs():
    return torch.randn(16, 8), torch.randn(8, 8, requires_grad=True)
""",
    "gelu": """
def f(x):
    return torch.nn.functional.gelu(x).sum()

def example_inputs():
    return torch.randn(64, 64, requires_grad=True)
""",
    "layer_norm": """
def f(x, w, b):
    return torch.nn.functional.layer_norm(x, (128,), w, b)

def example_inputs():
    return torch.randn(32, 128), torch.ones(128), torch.zeros(128)
""",
    "sort": """
def f(x):
    values, places = x.sort()
    return values * 2, places

def example_inputs():
    return torch.randn(100)
""",
    "write": """
def f(x, y):
    x.add_(y)
    return x.sum()

def example_inputs():
    return torch.ones(40), torch.ones(40)
""",
    "columns": """
def f(x):
    rows = x.sum(1)
    columns = x.sum(0)
    return rows.sqrt(), columns.sqrt()

def example_inputs():
    return torch.ones(64, 96)
""",
    "concat": """
def f(x, y):
    return torch.cat([x.sin(), y.cos()]) + 1

def example_inputs():
    return torch.randn(30), torch.randn(50)
""",
    "wrong_neg": """
import inductor_lab as lab
fault = lab.faults.wrong_neg()
fault.__enter__()

def f(x):
    a = torch.neg(x)  # wrong
    return torch.maximum(a, x)

def example_inputs():
    return torch.arange(9, dtype=torch.uint8)
""",
    "mean_of_squares": """
def f(x):
    return (x * x).mean(-1).rsqrt()

def example_inputs():
    return torch.rand(24, 50) + 1
""",
}


def source(name: str) -> str:
    """The file of a program."""
    return f"import torch\n{PROGRAMS[name]}"


def marked(name: str, mark: str) -> int:
    """The line of a program that has this mark."""
    (line,) = (n for n, text in enumerate(source(name).splitlines(), 1)
               if text.endswith(f"# {mark}"))  # fmt: skip
    return line
