"""What has to be computed, by whom, and where it lies until it is published."""
