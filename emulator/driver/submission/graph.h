#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "emulator/driver/process/stream_target.h"
#include "emulator/driver/stream/capture.h"

namespace torpor::emulator {

// Captured work, in an order that keeps every dependency.
using GraphWork = std::shared_ptr<const std::vector<Capture::Work>>;

// Queues all work of a graph as one piece of work.
CUresult LaunchGraph(const StreamTarget& target, GraphWork work);

}  // namespace torpor::emulator
