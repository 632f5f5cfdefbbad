"""From raw sources to checked, compiled samples."""
