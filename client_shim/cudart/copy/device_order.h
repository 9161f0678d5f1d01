#pragma once

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/copy/route.h"
#include "client_shim/cudart/stream/stream.h"

// The order of copies with the work of the devices on which their sides lie.
namespace torpor::shim {

bool IsBetweenDevices(const Route& route);

// Before a copy in `stream`. One that the caller waits for, in the legacy stream, comes behind the
// work of every device whose memory it names; the device in use becomes one of them.
// cudaErrorNotSupported for a copy between devices that do not reach each other's memory.
cudaError_t OrderBehindDevices(const Route& route, const Stream& stream, Wait wait);

// A copy that `run` puts into `stream`: behind the work of its devices, and if it is between two of
// them and the caller waits, done before what either is given next.
template <typename Run>
cudaError_t CopyAmongDevices(const Route& route, const Stream& stream, Wait wait, const Run& run) {
  TORPOR_TRY(OrderBehindDevices(route, stream, wait));
  TORPOR_TRY(run());
  const bool must_finish = wait == Wait::kYes && IsBetweenDevices(route);
  return must_finish ? Ask(wire::StreamSynchronize{stream.wire}) : cudaSuccess;
}

}  // namespace torpor::shim
