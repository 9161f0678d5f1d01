#pragma once

#include <cstdint>

#include "client_shim/cudart/stream/stream.h"

// Events that processes share (cudaEventInterprocess). Their state is two slots of their creator's
// completion page, which executors read and write for whoever names them. Each call is answered: a
// process may tell another of its record as soon as the call has returned, and a wait is for what
// was recorded when it was made. All speak to the device in use.
namespace torpor::shim {

struct SharedEvent {
  std::uint64_t owner = 0;  // the creator's session
  std::uint32_t issued_slot = 0;
  std::uint32_t done_slot = 0;
};

// cudaErrorMemoryAllocation if the completion page has no room.
cudaError_t AllotSharedEvent(SharedEvent& event);
// Only of the process that has created it. Its slots are for other shared events from now on.
void FreeSharedEvent(const SharedEvent& event);

cudaError_t RecordSharedEvent(const SharedEvent& event, const Stream& stream);
cudaError_t AwaitSharedEvent(const SharedEvent& event, const Stream& stream);
// cudaErrorNotReady if its latest record is not complete.
cudaError_t QuerySharedEvent(const SharedEvent& event);
cudaError_t SynchronizeSharedEvent(const SharedEvent& event);

}  // namespace torpor::shim
