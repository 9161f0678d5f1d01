#!/usr/bin/env python3
"""The recurrence as a service whose CUDA graph lives from one request to the next.

POST /start begins again, POST /next goes on; both answer {"values": [numbers]}.
"""

import pathlib
import sys

import recurrence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch"))
import json_service  # noqa: E402


def main():
    arguments = json_service.flags(__doc__).parse_args()

    def set_up():
        steps = recurrence.Recurrence(arguments.device)
        return {"/start": lambda _: {"values": steps.start()},
                "/next": lambda _: {"values": steps.step()}}

    json_service.serve(arguments.host, arguments.port, set_up)


if __name__ == "__main__":
    main()
