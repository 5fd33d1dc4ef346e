"""What every phase may import: options, errors, the observer, display."""
