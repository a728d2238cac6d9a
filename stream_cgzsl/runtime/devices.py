"""Which device computes. torch is imported only when it is needed: it takes seconds."""

from __future__ import annotations

from stream_cgzsl.errors import UsageError


def choose_device(wanted: str) -> str:
    """`auto` is a GPU where there is one, else the CPU. Raises `UsageError` for a device that cannot be used."""
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(wanted).type
    except RuntimeError as error:
        raise UsageError(f"there is no device {wanted!r}; use cpu, cuda or auto") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"--device {wanted}: there is no usable GPU; use cpu or auto")
    return wanted


def choose_scoring_device(wanted: str) -> str:
    """As `choose_device`, but `auto` is the CPU: most scorers have no GPU, and looking for one imports torch."""
    return "cpu" if wanted in ("auto", "cpu") else choose_device(wanted)
