"""`python -m stream_cgzsl` is `stream-cgzsl`."""

import sys

from stream_cgzsl.cli import main

sys.exit(main())
