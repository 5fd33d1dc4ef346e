"""Which stage of stock torch.compile is the first that is wrong."""
