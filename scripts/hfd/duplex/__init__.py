"""What a model says of itself and takes: units, events, frame rules, and the one interface."""
