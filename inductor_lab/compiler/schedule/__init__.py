"""Convert a loop program to a schedule: fuse nests into kernels, order them, plan memory."""
