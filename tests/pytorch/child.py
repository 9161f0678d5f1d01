"""Programs that run in a process of their own: what they do to it is not done to the tests'."""

import os
import subprocess
import sys

PATIENCE_S = 120


def run(program, **environment):
    """The ended process of `program`, Python text, with `environment` added to this one's."""
    return subprocess.run([sys.executable, "-B", "-c", program], text=True, capture_output=True,
                          timeout=PATIENCE_S, env={**os.environ, **environment}, check=False)
