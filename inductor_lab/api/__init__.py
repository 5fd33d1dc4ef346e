"""What a user calls: compile, inspect, Compilation."""
