"""The registry of these tests."""

from schema_registry import schemas

__all__ = ["schemas"]
