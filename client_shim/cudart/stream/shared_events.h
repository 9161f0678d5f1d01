#pragma once

#include <cstdint>

#include "client_shim/cudart/stream/stream.h"

// Events shared among processes (cudaEventInterprocess). The state is two slots of the creator's
// completion page; executors read and write the slots for every process that names the event. Every
// call is synchronous: a process may announce a record as soon as the call has returned, and a wait
// covers the record that was latest when the wait was made. All functions use the device in use.
namespace torpor::shim {

struct SharedEventSlots {
  std::uint64_t owner = 0;  // the creator's session
  std::uint32_t issued_slot = 0;
  std::uint32_t done_slot = 0;
};

// cudaErrorMemoryAllocation if the completion page has no room.
cudaError_t AllotSharedEvent(SharedEventSlots& event);
// Returns the slots for reuse by other shared events. Only the creating process may call.
void FreeSharedEvent(const SharedEventSlots& event);

cudaError_t RecordSharedEvent(const SharedEventSlots& event, const ClientStream& stream);
cudaError_t AwaitSharedEvent(const SharedEventSlots& event, const ClientStream& stream);
// cudaErrorNotReady while the latest record is incomplete.
cudaError_t QuerySharedEvent(const SharedEventSlots& event);
// Blocks, polling, until the latest record is complete.
cudaError_t SynchronizeSharedEvent(const SharedEventSlots& event);

}  // namespace torpor::shim
