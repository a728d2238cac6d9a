"""How a ledger becomes a learner again: applying windows, restoring, replaying, checking."""
