#pragma once

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/copy/route.h"
#include "client_shim/cudart/stream/stream.h"

// The order of copies relative to the work of all devices concerned.
namespace torpor::shim {

// Whether both sides are device memory, of two devices.
bool IsBetweenDevices(const CopyRoute& route);

// Called before a copy in `stream`. A copy in the legacy stream that the caller waits for comes
// behind the work of every device concerned, and a device concerned becomes the device in use.
// cudaErrorNotSupported for a copy between devices that cannot reach each other's memory.
cudaError_t OrderBehindDevices(const CopyRoute& route, const ClientStream& stream, Wait wait);

// Has `run` put a copy into `stream`, behind the work of the devices concerned. If the copy is
// between devices and the caller waits, the copy is done before later work of either device.
template <typename Run>
cudaError_t CopyAmongDevices(const CopyRoute& route, const ClientStream& stream, Wait wait,
                             const Run& run) {
  TORPOR_TRY(OrderBehindDevices(route, stream, wait));
  TORPOR_TRY(run());
  const bool must_finish = wait == Wait::kYes && IsBetweenDevices(route);
  return must_finish ? Ask(wire::StreamSynchronize{stream.wire}) : cudaSuccess;
}

}  // namespace torpor::shim
