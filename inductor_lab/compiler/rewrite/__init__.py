"""FX rewrites: named passes over ATen graphs, each with a record of what it did."""
