"""A deep-learning compiler with the shape of torch.compile, built to be looked into."""
