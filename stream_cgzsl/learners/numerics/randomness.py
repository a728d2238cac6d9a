"""Random numbers that depend on nothing but the seed, the window and what they are for."""

from __future__ import annotations

import hashlib

import torch


def generator(seed: int, number: int, purpose: str) -> torch.Generator:
    """A generator on the CPU, whatever the device: draws are the same everywhere."""
    digest = hashlib.sha256(f"{seed}/{number}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)
