"""What a correct compiler does not need, each with a switch (`registration.py`)."""
