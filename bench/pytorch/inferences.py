#!/usr/bin/env python3
"""Times inferences of each model, one after another, and prints them as a line of JSON:
{MODEL: {"latency_ms": [...], "issue_ms": [...]}}.

The latency is from the upload of the input until the result is in the host's memory; for the first
part of it, the issue, the program makes its calls and does not wait for the result. With
TORPOR_TRACE one more inference of each is a section of the trace.
"""

import argparse
import ctypes
import gc
import json
import os
import time

import torch

from models import MODELS


@torch.inference_mode()
def measure(start, warm_up, inferences):
    latency_ms, issue_ms = [], []
    for index in range(warm_up + inferences):
        begin = time.perf_counter()
        result = start()
        issued = time.perf_counter()
        result.cpu()
        end = time.perf_counter()
        if index >= warm_up:
            issue_ms.append(1e3 * (issued - begin))
            latency_ms.append(1e3 * (end - begin))
    return {"latency_ms": latency_ms, "issue_ms": issue_ms}


def trace(starts):
    """One more inference of each, as a section of the trace."""
    mark = ctypes.CDLL("libtorpor_client.so").torporTraceMark
    for name, start in starts.items():
        mark(name.encode())
        with torch.inference_mode():
            start().cpu()
        mark(None)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--warm-up", type=int, default=1)
    parser.add_argument("--inferences", type=int, default=10)
    arguments = parser.parse_args()
    starts = {name: make(arguments.device) for name, make in MODELS.items()}
    gc.collect()
    gc.disable()
    print(json.dumps({name: measure(start, arguments.warm_up, arguments.inferences)
                      for name, start in starts.items()}))
    if "TORPOR_TRACE" in os.environ:
        trace(starts)


if __name__ == "__main__":
    main()
