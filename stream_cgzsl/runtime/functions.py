"""Functions that an operator names on the command line as `module:function`. No name ever comes from a record."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stream_cgzsl.errors import UsageError

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def names_a_function(text: str) -> bool:
    """Whether a text has the form `module:function`."""
    return _NAME.fullmatch(text) is not None


def load_function(text: str, source: str) -> Callable[..., Any]:
    """The function `module:function`; the module may also be a file in the current folder.

    Raises `UsageError` that begins with `source`, such as the flag.
    """
    if not names_a_function(text):
        raise UsageError(f"{source}: {text!r} is not of the form module:function")
    module_name, _, name = text.partition(":")
    here = str(Path.cwd())
    if not {"", here} & set(sys.path):  # the script of an installed command does not look where it is started
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except UsageError:
        raise
    except Exception as error:  # a module is foreign code, and may fail in any way
        raise UsageError(f"{source}: cannot import {module_name!r}: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        what = "is not a function" if hasattr(module, name) else "does not exist there"
        raise UsageError(
            f"{source}: {text!r}: {name!r} {what}; the module is {getattr(module, '__file__', 'built in')}"
        )
    return function  # type: ignore[no-any-return]  # checked above, as far as anything can
