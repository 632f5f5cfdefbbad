"""The report: a static folder that opens from file:// and from any web server."""
