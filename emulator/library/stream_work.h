#pragma once

#include <cuda.h>

#include <functional>
#include <span>

#include "emulator/library/driver_calls.h"
#include "emulator/library/extent.h"

// How the emulated libraries work in stream order: as host functions on the driver's streams.
namespace torpor::emulator {

// Whether the device may touch all of `extent`. Without this a wrong address in a call would take
// down the process that does the work.
bool Accessible(const DriverCalls& driver, const Extent& extent);

// Queues `work` on the stream if all `extents` are accessible; else, or if the stream refuses it,
// false, with a line on stderr for the first. Where nothing is computed that is all.
bool QueueWork(const DriverCalls& driver, CUstream stream, std::span<const Extent> extents,
               std::function<void()> work);

}  // namespace torpor::emulator
