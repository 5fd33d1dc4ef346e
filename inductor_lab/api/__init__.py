"""The functions and classes for users: compile, inspect, Compilation."""
