"""The version of the package: in every ledger record, report and build metric."""

__version__ = "0.1.0"
