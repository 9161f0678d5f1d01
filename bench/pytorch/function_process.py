#!/usr/bin/env python3
"""Prints as a line of JSON what this process takes: memory after it has imported torch and after
its first inference, which is the sentence encoder's, and the seconds from its start to both."""

import argparse
import json
import os
import pathlib
import time

FIELDS = {"rss_mib": "Rss:", "pss_mib": "Pss:", "private_mib": "Private_Dirty:"}


def age_s():
    """Since the process was started."""
    # The 22nd field, of which the second, a name in parentheses, may hold spaces.
    after_name = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    started_s = int(after_name[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_s


def memory_mib():
    lines = pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    kib = {line.split()[0]: int(line.split()[1]) for line in lines}
    return {name: kib[field] / 1024 for name, field in FIELDS.items()}


def state():
    return {"s": age_s(), **memory_mib()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    device = parser.parse_args().device
    import torch  # what it costs is measured
    imported = state()
    from models import sentence_encoder
    start = sentence_encoder(device)
    with torch.inference_mode():
        start().cpu()
    print(json.dumps({"imported": imported, "first_inference": state()}))


if __name__ == "__main__":
    main()
