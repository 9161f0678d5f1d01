"""The executor lists the GPUs; torpord becomes ready, has a pool, and stops."""

import json

from daemon import Daemon


def run(setting, results):
    command = [setting.bin / "torpor-executor", "--list-devices", "--cuda-library-dir",
               setting.driver_folder()]
    ended = setting.run(command, 60, setting.driver_environment())
    if ended.status != 0:
        results.fail(f"torpor-executor --list-devices: status {ended.status}: {ended.tail()}")
        return
    for device in json.loads(ended.out)["devices"]:
        results.show(results.add(f"executor/GPU {device['index']}", [
            device["name"], f"{device['total_bytes'] >> 20} MiB"], "text"))
    # The emulator makes a file of each handle: a pool for a whole H200 takes the rehearsal's time.
    settings = {"pool_bytes": "2GiB"} if setting.rehearse else {}
    with Daemon(setting, **settings) as daemon:
        results.show(results.add("executor/until ready", [round(daemon.start_s, 3)], "s",
                                 modelled=False))
        gpu = daemon.status()["gpus"][0]
        results.show(results.add("executor/pool", [gpu["pool_bytes"] / (1 << 20)], "MiB"))
        rate = gpu.get("link_bytes_per_second", 0) / 1e9
        results.show(results.add("executor/link", [rate], "GB/s"))
    results.show(results.add("executor/until stopped", [round(daemon.stop_s, 3)], "s",
                             modelled=False))
    warnings = daemon.last_words(8)
    if warnings:
        results.note(f"torpord said: {warnings}")
