#!/usr/bin/env python3
"""The decoder as a service that keeps its KV cache on the GPU from one request to the next.

POST /start begins again, POST /next goes on; both answer {"token": number}.
"""

import pathlib
import sys

import decoder

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch"))
import json_service  # noqa: E402


def main():
    arguments = json_service.flags(__doc__).parse_args()

    def set_up():
        generation = decoder.Generation(arguments.device)
        return {"/start": lambda _: {"token": generation.start()},
                "/next": lambda _: {"token": generation.step()}}

    json_service.serve(arguments.host, arguments.port, set_up)


if __name__ == "__main__":
    main()
