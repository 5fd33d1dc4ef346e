"""From a captured graph to forward and backward graphs: AOTAutograd, and our min-cut."""
