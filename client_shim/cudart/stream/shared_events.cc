#include "client_shim/cudart/stream/shared_events.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/call/per_device.h"

namespace torpor::shim {
namespace {

// Numbers of records exceed all values of the core's own use of a slot, so a slot once used for
// records never returns to the core.
class FreeSlots {
 public:
  bool Take(SharedEventSlots& event) {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return false;
    event = free_.back();
    free_.pop_back();
    return true;
  }
  void Add(const SharedEventSlots& event) {
    std::lock_guard lock(mutex_);
    free_.push_back(event);
  }

 private:
  std::mutex mutex_;
  std::vector<SharedEventSlots> free_;
};

// The free slot pairs of the device in use.
FreeSlots& TheFreeSlots() {
  static auto* const slots = new PerDevice<FreeSlots>();
  return slots->here();
}

}  // namespace

cudaError_t AllotSharedEvent(SharedEventSlots& event) {
  if (TheFreeSlots().Take(event)) return cudaSuccess;
  const std::uint32_t issued = Core().AllotSlot();
  const std::uint32_t done = Core().AllotSlot();
  if (issued == 0 || done == 0) {
    Core().FreeSlot(issued);
    Core().FreeSlot(done);
    return cudaErrorMemoryAllocation;
  }
  event = {Core().session().session_id, issued, done};
  return cudaSuccess;
}

void FreeSharedEvent(const SharedEventSlots& event) { TheFreeSlots().Add(event); }

cudaError_t RecordSharedEvent(const SharedEventSlots& event, const ClientStream& stream) {
  return Ask(wire::SharedEventRecord{event.owner, event.issued_slot, event.done_slot, stream.wire});
}

cudaError_t AwaitSharedEvent(const SharedEventSlots& event, const ClientStream& stream) {
  return Ask(wire::SharedEventWait{event.owner, event.issued_slot, event.done_slot, stream.wire});
}

cudaError_t QuerySharedEvent(const SharedEventSlots& event) {
  wire::SharedEventQueryResult result;
  TORPOR_TRY(Ask(wire::SharedEventQuery{event.owner, event.issued_slot, event.done_slot}, result));
  return result.is_complete != 0 ? cudaSuccess : cudaErrorNotReady;
}

// Polls: an executor thread blocked on the event could not serve this process, and the event may
// depend on work of the process's other threads.
cudaError_t SynchronizeSharedEvent(const SharedEventSlots& event) {
  constexpr std::chrono::microseconds kLongestPause{1000};
  std::chrono::microseconds pause{20};
  for (;;) {
    const cudaError_t error = QuerySharedEvent(event);
    if (error != cudaErrorNotReady) return error;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace torpor::shim
