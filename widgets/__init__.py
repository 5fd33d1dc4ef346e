"""What draws a compilation: the explorer, pictures, reports.  Imported as `inductor_lab.widgets`."""
