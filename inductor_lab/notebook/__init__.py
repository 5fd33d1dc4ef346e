"""What `%%compile` does with a cell: which of its calls are compiled, and how a mistake is told."""
