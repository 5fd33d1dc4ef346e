"""The exercises, one module for each lab; importing them registers them."""

from inductor_lab.course.labs import capture, decompositions, fusion, gradients, loops

__all__ = ["capture", "decompositions", "fusion", "gradients", "loops"]
