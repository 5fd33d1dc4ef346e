"""A marimo program: the explorer, a benchmark and a stepper, and cells that react to them."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import torch

    import inductor_lab as lab

    return lab, mo, torch


@app.cell
def _(lab, torch):
    def pythagoras(x):
        one = torch.sin(x) ** 2
        return one + torch.cos(x) ** 2

    c = lab.inspect(pythagoras, torch.randn(1000))
    c  # noqa: B018
    return c, pythagoras


@app.cell
def _(c, mo):
    widget = c.widget()
    explorer = mo.ui.anywidget(widget)
    explorer  # noqa: B018
    return explorer, widget


@app.cell
def _(explorer, mo):
    mo.md(f"`selected {explorer.selected} in {explorer.view}`")
    return


@app.cell
def _(mo):
    stage = mo.ui.dropdown(["source", "g0.forward.loops"], label="stage")
    stage  # noqa: B018
    return (stage,)


@app.cell
def _(stage, widget):
    if stage.value:
        widget.view = stage.value
    return


@app.cell
def _(lab, pythagoras, torch):
    measured = lab.bench(
        pythagoras, torch.randn(1000), against="eager", seconds=0.05, cold=False, kernels=False
    )
    measured  # noqa: B018
    return (measured,)


@app.cell
def _(measured, mo):
    table = mo.ui.anywidget(measured.widget())
    table  # noqa: B018
    return (table,)


@app.cell
def _(mo, table):
    mo.md(f"`selected row {table.selected}`")
    return


@app.cell
def _(c):
    c.steps()
    return


if __name__ == "__main__":
    app.run()
