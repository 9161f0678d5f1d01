"""What decides the size of chunks: mapping by handles' size, and rates of the link."""

import json

PATIENCE_S = 120
BENCHMARKS = (("handle_benchmark", "MapAnImage"), ("link_benchmark", "HostTo|ToOneGpu"))


def run(setting, results):
    environment = setting.driver_environment(TORPOR_BENCH_GPUS="1",
                                             TORPOR_BENCH_DRIVER_DIR=str(setting.driver_folder()))
    for name, pattern in BENCHMARKS:
        output = setting.work / f"{name}.json"
        ended = setting.run([setting.benchmarks / name, f"--benchmark_filter={pattern}",
                             f"--benchmark_out={output}", "--benchmark_min_time=0.01"],
                            PATIENCE_S, environment)
        if ended.status != 0 or not output.exists():
            results.fail(f"{name}: status {ended.status}: {ended.tail()}")
            continue
        for row in json.loads(output.read_text())["benchmarks"]:
            _tell(results, row)
    (setting.work / "emulator-node").unlink(missing_ok=True)


def _tell(results, row):
    name = f"benchmark/{row['name']}"
    if row.get("error_occurred"):
        results.add(name, [], "", row.get("error_message", "failed"))
        return
    unit = row["time_unit"]
    results.show(results.add(name, [row["real_time"]], unit))
    if "GB/s" in row:
        results.show(results.add(f"{name}/rate", [row["GB/s"]], "GB/s"))
