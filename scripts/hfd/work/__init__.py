"""Which samples run where: shards, leases, the private store, what is missing and why."""
