"""The errors of this package. Every message says what happened, where, and what to do."""

from __future__ import annotations


class CgzslError(Exception):
    """Base of everything this package raises on purpose. `exit_code` is what a command ends with."""

    exit_code = 1


class UsageError(CgzslError):
    """A setting or a command line that cannot work."""

    exit_code = 2


class BusUnavailable(CgzslError):
    """The bus cannot be reached, or did not answer in time. Trying again later may work."""

    exit_code = 3


class Refused(CgzslError):
    """The bus answered no: not authenticated, not authorised, or not supported."""

    exit_code = 4


class TopicMissing(CgzslError):
    """A topic does not exist."""

    exit_code = 5


class TopicMisconfigured(CgzslError):
    """A topic exists, but its retention would lose records we need, or it has the wrong number of partitions."""

    exit_code = 5


class Fenced(CgzslError):
    """A newer publisher of the same name exists. This one must stop; nothing of its open transaction shows."""

    exit_code = 6


class Expired(CgzslError):
    """Records that should be read are no longer on the bus."""

    exit_code = 7


class MessageTooLarge(CgzslError):
    """A record is larger than the bus takes."""


class BrokenLedger(CgzslError):
    """The ledger and what it points to do not agree."""

    exit_code = 8


class Cancelled(CgzslError):
    """Training was cancelled before it was done. Nothing of it was kept."""


class TrainingFailed(CgzslError):
    """A window could not be trained: its numbers, or those of the result, are not finite. Nothing of it was kept."""


class TooManyDeadLetters(CgzslError):
    """More records of one window are unusable than the operator allows. Nothing of the window was committed."""

    exit_code = 9


class NotReady(CgzslError):
    """There is no generation that can answer yet."""


class Interrupted(CgzslError):
    """A person stopped a command that can be resumed. The message says how."""

    exit_code = 130
