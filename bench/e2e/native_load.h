#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "emulator/node/model_account.h"

namespace torpor::bench {

struct NativeLoad {
  std::vector<Duration> durations;  // real ones, one a round
  emulator::ModelReport report;
};

// How long a program that has the first GPU of an emulated node for itself takes to load tensors of
// these sizes as programs do, by a cudaMemcpy from ordinary memory for each, `rounds` times.
// Without cudaMalloc: what that costs on the emulator says nothing of a GPU's driver. `topology` is
// a file's text. Runs in a process of its own on a node of its own. A failure ends the process.
NativeLoad MeasureNativeLoad(const std::string& topology, const std::vector<Bytes>& tensors,
                             int rounds);

}  // namespace torpor::bench
