"""What, besides code and data, decides the last bits of a result."""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy as np
import torch


def environment(device: str) -> dict[str, Any]:
    """Two runs of the same windows in equal environments give the same bytes."""
    on_gpu = device.startswith("cuda")
    return {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if on_gpu else "cpu",
        "tf32": bool(on_gpu and torch.backends.cuda.matmul.allow_tf32),
    }


def peak_memory(device: str) -> int:
    """The most bytes of the accelerator in use at once since the start; 0 without one."""
    return int(torch.cuda.max_memory_allocated(device)) if device.startswith("cuda") else 0


def prepare_torch(threads: int) -> None:
    """Fixes what torch would otherwise choose by the machine. Call once, before the first tensor is made."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # CUDA reads it once; without it torch refuses
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=False)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
