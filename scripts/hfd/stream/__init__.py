"""One compiled file as a stream of units, and everything a model does in answer, on one clock."""
