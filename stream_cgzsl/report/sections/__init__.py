"""The parts of a report, in the order a reader meets them. Each is a function of the document alone."""
