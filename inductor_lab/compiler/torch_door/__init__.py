"""Every private name of torch that the compiler uses."""
