"""Small programs whose exact lines and columns the tests know.  Do not reformat."""

import torch

SCALE = 3


def squares(x):
    y = torch.sin(x) ** 2
    return y + torch.cos(x) ** 2


def breaks(x):
    y = x.sin()
    print("between")
    return y * SCALE


def branches(x, flag):
    if x.shape[0] > 6:
        x = x + 1
    return x * 2 if flag else x


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.attention(x).relu()


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
