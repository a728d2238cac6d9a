"""Where a bus file is: whether SQLite can share it there, and which process holds it."""

from __future__ import annotations

import re
from pathlib import Path

_NETWORK = {"9p", "afs", "ceph", "cifs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"}
_NETWORK_FUSE = {"fuse.ceph", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "fuse.sshfs"}
_WRITE_LOCK = 120  # the byte of the -shm file that SQLite locks for writing
_LOCK = re.compile(r"^\d+: POSIX +ADVISORY +WRITE (\d+) \w+:\w+:(\d+) (\d+) (\d+|EOF)$", re.MULTILINE)


def network_file_system(path: Path, mounts: str | None = None) -> str | None:
    """The kind of network file system that the path is on, as /proc/mounts has it; None if it is none, or unknown.

    The processes that share a bus file need memory in common, which such a file system cannot give them.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/mounts").read_text(errors="replace")
        except OSError:
            return None
    longest, kind = -1, ""
    for line in mounts.splitlines():
        _, mounted, found, *_ = line.split(" ")
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), mounted)
        if len(point) >= longest and path.is_relative_to(point):  # of two at one place, the later covers the earlier
            longest, kind = len(point), found
    return kind if kind in _NETWORK | _NETWORK_FUSE else None


def writer(path: Path) -> str | None:
    """The process that holds the write lock of the file, and what to do about it; None if the system does not tell."""
    try:
        inode = Path(f"{path}-shm").stat().st_ino
        locks = Path("/proc/locks").read_text()
        for pid, locked, first, last in _LOCK.findall(locks):
            if int(locked) == inode and int(first) <= _WRITE_LOCK and (last == "EOF" or int(last) >= _WRITE_LOCK):
                return _described(int(pid))
    except (OSError, ValueError):
        pass
    return None


def _described(pid: int) -> str:
    status = Path(f"/proc/{pid}/status").read_text()
    name = re.search(r"^Name:\s*(.*)$", status, re.MULTILINE)
    who = f"process {pid} ({name.group(1) if name else '?'}) holds the file's write lock"
    if re.search(r"^State:\s*[tT]", status, re.MULTILINE):
        return f"{who} and is stopped: kill -CONT {pid} lets it continue, kill -KILL {pid} ends it"
    return f"{who}; wait, or end it"
