#pragma once

#include <cuda.h>

#include <functional>
#include <span>

#include "emulator/library/driver_calls.h"
#include "emulator/library/extent.h"

// Stream-ordered work of the emulated libraries: host functions on the driver's streams.
namespace torpor::emulator {

// Whether the device may touch all of `extent`. Without this check, a wrong address in a call would
// crash the process that does the work.
bool Accessible(const DriverCalls& driver, const AccessExtent& extent);

// Queues `work` on `stream`. Returns false if an extent is not accessible, after a line on stderr,
// or if the stream refuses. If the topology sets `computes: false`, returns true without queueing.
bool QueueWork(const DriverCalls& driver, CUstream stream, std::span<const AccessExtent> extents,
               std::function<void()> work);

}  // namespace torpor::emulator
