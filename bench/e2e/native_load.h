#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

namespace torpor::bench {

// How long a program that has the first GPU of an emulated node for itself takes to load tensors of
// these sizes as programs do: cudaMalloc and cudaMemcpy from ordinary memory for each, `rounds`
// times. Runs in a process of its own on a node of its own. A failure ends the process.
std::vector<Duration> MeasureNativeLoad(const std::string& topology_path,
                                        const std::vector<Bytes>& tensors, int rounds);

}  // namespace torpor::bench
