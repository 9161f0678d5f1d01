#pragma once

#include <benchmark/benchmark.h>

namespace torpor::bench {

// A benchmark of milliseconds that other threads, or a disk, may take a part in.
struct Row {
  const char* name;
  void (*run)(benchmark::State&);
};

// Runs those of the registered benchmarks that the command line names. Gives the status to exit
// with: 1 for arguments that are unknown.
inline int RunBenchmarks(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace torpor::bench
