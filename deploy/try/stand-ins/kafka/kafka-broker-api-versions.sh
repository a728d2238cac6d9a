#!/usr/bin/env python3
"""Asks a broker which requests it knows, as the tool of this name does: `--bootstrap-server HOST:PORT`."""

import socket
import struct
import sys

host, _, port = sys.argv[sys.argv.index("--bootstrap-server") + 1].rpartition(":")
with socket.create_connection((host, int(port)), timeout=5) as broker:
    broker.sendall(struct.pack(">ihhih", 10, 18, 0, 0, -1))
    size, _, error, count = struct.unpack(">iihi", broker.recv(14, socket.MSG_WAITALL))
    print(f"{count} kinds of requests, error {error}")
    sys.exit(bool(error) or not count)
