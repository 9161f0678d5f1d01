#include "client_shim/cudart/stream/events.h"

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/stream/capture.h"
#include "client_shim/cudart/stream/host_functions.h"
#include "client_shim/cudart/stream/streams.h"
#include "client_shim/cudart/stream/submit.h"

namespace torpor::shim {
namespace {

// An event of the program; a cudaEvent_t is the event's wire name.
struct Event {
  ClientCore* core = nullptr;  // of the event's device
  std::uint64_t wire = 0;
  unsigned flags = 0;
  // 0 if the completion page had no free slot; queries of such an event wait.
  std::uint32_t slot = 0;
  std::atomic<std::uint64_t> recorded_value{0};  // 0: never recorded
  std::atomic<bool> is_recorded{false};
  // Set if the latest record was captured: the event then stands for nodes, not for a moment.
  std::atomic<bool> is_captured{false};
  CapturedRecord captured;
  // Set for an event shared among processes. Such an event uses core and flags only; `wire` is a
  // name in this process.
  std::optional<SharedEventSlots> shared;
  bool is_foreign = false;  // created by another process
};
using EventPtr = std::shared_ptr<Event>;

// All live events by wire name. Thread-safe.
class Events {
 public:
  void Insert(const EventPtr& event) {
    std::unique_lock lock(mutex_);
    by_wire_[event->wire] = event;
  }
  bool Erase(std::uint64_t wire) {
    std::unique_lock lock(mutex_);
    return by_wire_.erase(wire) > 0;
  }
  std::vector<EventPtr> TakeAllOf(const ClientCore& core) {
    std::unique_lock lock(mutex_);
    std::vector<EventPtr> taken;
    std::erase_if(by_wire_, [&](const auto& entry) {
      if (entry.second->core != &core) return false;
      taken.push_back(entry.second);
      return true;
    });
    return taken;
  }
  EventPtr Find(std::uint64_t wire) {
    std::shared_lock lock(mutex_);
    const auto found = by_wire_.find(wire);
    return found == by_wire_.end() ? nullptr : found->second;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<std::uint64_t, EventPtr> by_wire_;
};

Events& TheEvents() {
  static Events* const events = new Events();
  return *events;
}

cudaError_t FindEvent(cudaEvent_t handle, EventPtr& event) {
  TORPOR_TRY(Begin());
  event = TheEvents().Find(Address(handle));
  if (!event) return cudaErrorInvalidResourceHandle;
  UseCore(*event->core);
  return cudaSuccess;
}

// Whether the latest record is complete as far as the completion page shows; true without a record.
bool IsComplete(const Event& event) {
  return !event.is_recorded ||
         (event.slot != 0 && event.core->SlotValue(event.slot) >= event.recorded_value);
}

EventPtr NewEvent(unsigned flags) {
  auto event = std::make_shared<Event>();
  event->core = &Core();
  event->wire = Core().MintHandle(HandleKind::kEvent);
  event->flags = flags;
  return event;
}

cudaEvent_t HandleOf(const Event& event) { return reinterpret_cast<cudaEvent_t>(event.wire); }

// Events shared among processes have no timing.
cudaError_t CreateSharedEvent(cudaEvent_t& out, unsigned flags) {
  if ((flags & cudaEventDisableTiming) == 0) return cudaErrorInvalidValue;
  const EventPtr event = NewEvent(flags);
  TORPOR_TRY(AllotSharedEvent(event->shared.emplace()));
  TheEvents().Insert(event);
  out = HandleOf(*event);
  return cudaSuccess;
}

cudaError_t CreateEvent(cudaEvent_t* out, unsigned flags) {
  constexpr unsigned kKnown =
      cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  if (!out || (flags & ~kKnown) != 0) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  if ((flags & cudaEventInterprocess) != 0) return CreateSharedEvent(*out, flags);
  const EventPtr event = NewEvent(flags);
  event->slot = Core().AllotSlot();
  TORPOR_TRY(Core().Create(event->wire, Encode(wire::EventCreate{event->wire, flags})));
  TheEvents().Insert(event);
  *out = HandleOf(*event);
  return cudaSuccess;
}

cudaError_t Destroy(const Event& event) {
  UseCore(*event.core);
  if (event.shared) {
    if (!event.is_foreign) FreeSharedEvent(*event.shared);
    return cudaSuccess;
  }
  Core().FreeSlot(event.slot);
  return Core().Destroy(event.wire, Encode(wire::EventDestroy{event.wire}));
}

cudaError_t DestroyEvent(cudaEvent_t handle) {
  EventPtr event;
  TORPOR_TRY(FindEvent(handle, event));
  if (!TheEvents().Erase(event->wire)) return cudaErrorInvalidResourceHandle;
  return Destroy(*event);
}

// Records an event of the device in use on a stream ready for a command.
cudaError_t RecordOn(Event& event, const ClientStream& stream, unsigned flags) {
  if (event.core != &Core()) return cudaErrorInvalidResourceHandle;
  if (event.shared) return RecordSharedEvent(*event.shared, stream);
  const std::uint64_t value = event.slot == 0 ? 0 : Core().NextSlotValue(event.slot);
  TORPOR_TRY(Send(wire::EventRecord{event.wire, stream.wire, flags, event.slot, value}));
  event.recorded_value = value;  // only after sending: an unsent record would never complete
  event.is_recorded = true;
  event.is_captured = false;
  return cudaSuccess;
}

// A record of an event. Captured, the record stands for the nodes captured so far and becomes a
// node only if the program asked for an external one.
struct RecordWork {
  Event& event;
  unsigned flags = 0;

  cudaError_t CaptureOn(cudaStream_t stream) const {
    if (event.shared) return InvalidateCapture(stream, cudaErrorNotSupported);
    if ((flags & cudaEventRecordExternal) != 0)
      return Capture(stream, EventRecordWork{HandleOf(event)});
    TORPOR_TRY(CaptureRecord(stream, event.captured));
    event.is_captured = true;
    return cudaSuccess;
  }
  cudaError_t Send(cudaStream_t handle) const {
    if (flags != cudaEventRecordDefault) return cudaErrorInvalidValue;
    ClientStreamPtr stream;
    TORPOR_TRY(UseStream(handle, stream));
    return RecordOn(event, *stream, flags);
  }
};

cudaError_t Record(cudaEvent_t handle, cudaStream_t stream, unsigned flags) {
  EventPtr event;
  TORPOR_TRY(FindEvent(handle, event));
  return Submit(stream, RecordWork{*event, flags});
}

// A capture does not survive a question about an event that was recorded in the capture.
cudaError_t RefuseCapturedEvent(const Event& event) {
  if (!event.is_captured) return cudaSuccess;
  InvalidateCaptureOf(event.captured);
  return cudaErrorCapturedEvent;
}

cudaError_t Query(cudaEvent_t handle) {
  EventPtr event;
  TORPOR_TRY(FindEvent(handle, event));
  if (event->shared) return QuerySharedEvent(*event->shared);
  TORPOR_TRY(RefuseCapturedEvent(*event));
  if (IsComplete(*event)) return Core().TakeAsyncError();
  if (event->slot == 0) return Ask(wire::EventSynchronize{event->wire});
  TORPOR_TRY(Core().Flush());
  return IsComplete(*event) ? Core().TakeAsyncError() : cudaErrorNotReady;
}

cudaError_t Synchronize(cudaEvent_t handle) {
  EventPtr event;
  TORPOR_TRY(FindEvent(handle, event));
  if (event->shared) return SynchronizeSharedEvent(*event->shared);
  TORPOR_TRY(RefuseCapturedEvent(*event));
  if (IsComplete(*event)) return Core().TakeAsyncError();
  return Ask(wire::EventSynchronize{event->wire});
}

// cudaEventElapsedTime: both events recorded, on one device, with timing. In milliseconds.
cudaError_t Elapsed(float* milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle) {
  if (!milliseconds) return cudaErrorInvalidValue;
  EventPtr start;
  EventPtr end;
  TORPOR_TRY(FindEvent(start_handle, start));
  TORPOR_TRY(FindEvent(end_handle, end));
  if (start->is_captured || end->is_captured) return cudaErrorCapturedEvent;
  const bool timed = ((start->flags | end->flags) & cudaEventDisableTiming) == 0;
  const bool is_comparable = start->core == end->core && start->is_recorded && end->is_recorded;
  if (!timed || !is_comparable) return cudaErrorInvalidResourceHandle;
  // The completion page may be ahead of the batch, never behind an executor's answer.
  TORPOR_TRY(Core().Flush());
  const bool known = start->slot != 0 && end->slot != 0;
  if (known && !(IsComplete(*start) && IsComplete(*end))) return cudaErrorNotReady;
  wire::EventElapsedTimeResult result;
  TORPOR_TRY(Ask(wire::EventElapsedTime{start->wire, end->wire}, result));
  *milliseconds = result.milliseconds;
  return cudaSuccess;
}

// Has the stream's device wait for the mark that the event's device writes to the completion page.
cudaError_t WaitOnOtherDevice(const Event& event, const ClientStream& stream) {
  if (IsComplete(event)) return cudaSuccess;
  if (event.slot == 0) {
    const CoreScope scope;
    UseCore(*event.core);
    return Ask(wire::EventSynchronize{event.wire});
  }
  // Flushes the record first; otherwise the wait might block on a record in our own batch forever.
  TORPOR_TRY(event.core->Flush());
  return Send(wire::StreamWaitMark{stream.wire, event.core->session().session_id, event.slot,
                                   event.recorded_value});
}

cudaError_t WaitOn(const Event& event, const ClientStream& stream) {
  if (event.shared) return AwaitSharedEvent(*event.shared, stream);
  if (!event.is_recorded) return cudaSuccess;
  if (event.core != &Core()) return WaitOnOtherDevice(event, stream);
  return Send(wire::StreamWaitEvent{stream.wire, event.wire, cudaEventWaitDefault});
}

// A stream's wait for an event whose latest record was not captured. A capture takes only external
// waits.
struct WaitWork {
  const Event& event;
  unsigned flags = 0;

  cudaError_t CaptureOn(cudaStream_t stream) const {
    if (event.shared) return InvalidateCapture(stream, cudaErrorNotSupported);
    if ((flags & cudaEventWaitExternal) == 0)
      return InvalidateCapture(stream, cudaErrorStreamCaptureIsolation);
    return Capture(stream, EventWaitWork{HandleOf(event)});
  }
  cudaError_t Send(cudaStream_t handle) const {
    if (flags != cudaEventWaitDefault) return cudaErrorInvalidValue;
    ClientStreamPtr stream;
    TORPOR_TRY(UseStream(handle, stream));
    return WaitOn(event, *stream);
  }
};

cudaError_t StreamWait(cudaStream_t stream, cudaEvent_t handle, unsigned flags) {
  EventPtr event;
  TORPOR_TRY(FindEvent(handle, event));
  return event->is_captured ? CaptureWait(stream, event->captured)
                            : Submit(stream, WaitWork{*event, flags});
}

}  // namespace

cudaError_t RecordEvent(cudaEvent_t handle, const ClientStream& stream) {
  ClientCore& core = Core();
  EventPtr event;
  TORPOR_TRY(FindEvent(handle, event));
  UseCore(core);
  return RecordOn(*event, stream, cudaEventRecordDefault);
}

cudaError_t AwaitEvent(cudaEvent_t handle, const ClientStream& stream) {
  ClientCore& core = Core();
  EventPtr event;
  TORPOR_TRY(FindEvent(handle, event));
  UseCore(core);
  return WaitOn(*event, stream);
}

cudaError_t CheckEvent(cudaEvent_t handle) {
  EventPtr event;
  TORPOR_TRY(FindEvent(handle, event));
  return event->shared ? cudaErrorNotSupported : cudaSuccess;
}

cudaError_t FindSharedEvent(cudaEvent_t handle, SharedEventSlots& shared) {
  EventPtr event;
  TORPOR_TRY(FindEvent(handle, event));
  if (!event->shared || event->is_foreign) return cudaErrorInvalidResourceHandle;
  shared = *event->shared;
  return cudaSuccess;
}

cudaError_t OpenSharedEvent(const SharedEventSlots& shared, cudaEvent_t& out) {
  const cudaError_t own = ForEachDevice([&] {
    const bool is_own = Core().session().session_id == shared.owner;
    return is_own ? cudaErrorDeviceUninitialized : cudaSuccess;
  });
  TORPOR_TRY(own);
  // The executor knows whether a process of this function has the event.
  const cudaError_t found = QuerySharedEvent(shared);
  if (found != cudaSuccess && found != cudaErrorNotReady) return found;
  const EventPtr event = NewEvent(cudaEventDisableTiming | cudaEventInterprocess);
  event->shared = shared;
  event->is_foreign = true;
  TheEvents().Insert(event);
  out = HandleOf(*event);
  return cudaSuccess;
}

cudaError_t DestroyAllEvents() {
  for (const EventPtr& event : TheEvents().TakeAllOf(Core())) TORPOR_TRY(Destroy(*event));
  return cudaSuccess;
}

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return Entry([&] { return CreateEvent(event, cudaEventDefault); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return Entry([&] { return CreateEvent(event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return Entry([&] { return DestroyEvent(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Entry([&] { return Record(event, stream, cudaEventRecordDefault); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return Entry([&] { return Record(event, stream, flags); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(Query(event));
    return FetchManagedVariables();
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(Synchronize(event));
    return FetchManagedVariables();
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return Entry([&] { return Elapsed(ms, start, end); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return Entry([&] { return StreamWait(stream, event, flags); });
}
