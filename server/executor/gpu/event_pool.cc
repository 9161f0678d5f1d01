#include "server/executor/gpu/event_pool.h"

#include "base/status_macros.h"

namespace torpor::executor {

EventPool::~EventPool() {
  for (const CUevent event : unused_) device_.discarded().Add(event);
}

absl::StatusOr<CUevent> EventPool::Take() {
  CUevent event = nullptr;
  if (unused_.empty()) {
    TORPOR_RETURN_IF_ERROR(device_.Status(
        device_.driver().EventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate"));
    return event;
  }
  event = unused_.back();
  unused_.pop_back();
  return event;
}

}  // namespace torpor::executor
