// Streams, events, synchronisation and limits.
#include <driver_types.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/executor/gpu/call_status.h"
#include "server/executor/runtime/cudart_calls.h"

namespace torpor::executor {

using cuda_api::CallFailed;
using cuda_api::CallStatus;

namespace {

CallStatus UnknownLimit(std::uint32_t limit) {
  return CallFailed(cudaErrorUnsupportedLimit, absl::StrCat("there is no limit ", limit));
}

}  // namespace

CudartCalls::CudartCalls(const Device& device, ModuleLibrary& library, SessionMemory& memory,
                         GraphSet::RunCommand run)
    : device_(device),
      library_(library),
      memory_(memory),
      modules_(device, library, memory.image()),
      arrays_(device, memory.image()),
      textures_(device),
      events_(device),
      streams_(device, &memory.image().arrival()),
      graphs_(device, streams_, std::move(run)) {}

CallStatus CudartCalls::Outcome(CUresult result, std::string_view what) const {
  return ToCallStatus(driver(), result, what);
}

CallStatus CudartCalls::Marked(CallStatus status, std::uint64_t stream, std::uint32_t slot,
                               std::uint64_t value) {
  if (value == 0) return status;
  CUstream handle = nullptr;
  // With no such stream there is no earlier work: the mark is written at once.
  const CUresult used = streams_.Use(stream, handle);
  const CUresult marked =
      memory_.window().Mark(used == CUDA_SUCCESS ? handle : nullptr, slot, value);
  return status.ok() ? Outcome(marked, "completion mark") : status;
}

CallStatus CudartCalls::StreamCreate(const wire::StreamCreate& command) {
  return Outcome(streams_.Create(command.stream, command.flags, command.priority),
                 "cudaStreamCreate");
}

CallStatus CudartCalls::StreamDestroy(const wire::StreamDestroy& command) {
  return Outcome(streams_.Destroy(command.stream), "cudaStreamDestroy");
}

CallStatus CudartCalls::StreamWaitEvent(const wire::StreamWaitEvent& command) {
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) result = events_.Wait(command.event, stream);
  return Outcome(result, "cudaStreamWaitEvent");
}

CallStatus CudartCalls::StreamMark(const wire::StreamMark& command) {
  return Marked({}, command.stream, command.slot, command.value);
}

CallStatus CudartCalls::StreamFence(const wire::StreamFence& command) {
  return WaitFor(command.stream);
}

CallStatus CudartCalls::StreamSynchronize(const wire::StreamSynchronize& command,
                                          wire::StreamSynchronizeResult&) {
  return WaitFor(command.stream);
}

CallStatus CudartCalls::WaitFor(std::uint64_t stream_id) {
  CUstream stream = nullptr;
  CUresult result = streams_.Use(stream_id, stream);
  if (result == CUDA_SUCCESS) result = driver().StreamSynchronize(stream);
  return Outcome(result, "cudaStreamSynchronize");
}

CallStatus CudartCalls::EventCreate(const wire::EventCreate& command) {
  return Outcome(events_.Create(command.event, command.flags), "cudaEventCreate");
}

CallStatus CudartCalls::StreamWaitMark(const wire::StreamWaitMark& command) {
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) {
    const SessionWindow* const window = UseWindowOf({command.session});
    result = window == nullptr ? CUDA_ERROR_INVALID_HANDLE
                               : window->Await(stream, command.slot, command.value);
  }
  return Outcome(result, "waiting for an event of another device");
}

SessionWindow* CudartCalls::UseWindowOf(SessionId session) {
  const std::shared_ptr<SessionWindow> window = memory_.WindowOf(session);
  if (window) windows_in_use_.insert(window);
  return window.get();
}

template <typename Command, typename Use>
CUresult CudartCalls::OnSharedEvent(const Command& command, const Use& use) {
  SessionWindow* const window = UseWindowOf({command.owner});
  if (window == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::optional<SharedEvent> event =
      SharedEvent::At(*window, command.issued_slot, command.done_slot, lease_);
  return event ? use(*event) : CUDA_ERROR_INVALID_HANDLE;
}

template <typename Command>
CUresult CudartCalls::EnqueueSharedEvent(const Command& command,
                                         CUresult (SharedEvent::*work)(CUstream) const) {
  CUstream stream = nullptr;
  if (const CUresult used = streams_.Use(command.stream, stream)) return used;
  return OnSharedEvent(command, [&](const SharedEvent& event) { return (event.*work)(stream); });
}

CallStatus CudartCalls::SharedEventRecord(const wire::SharedEventRecord& command,
                                          wire::SharedEventRecordResult&) {
  return Outcome(EnqueueSharedEvent(command, &SharedEvent::Record),
                 "recording an event among processes");
}

CallStatus CudartCalls::SharedEventWait(const wire::SharedEventWait& command,
                                        wire::SharedEventWaitResult&) {
  return Outcome(EnqueueSharedEvent(command, &SharedEvent::Await),
                 "waiting for an event among processes");
}

CallStatus CudartCalls::SharedEventQuery(const wire::SharedEventQuery& command,
                                         wire::SharedEventQueryResult& result) {
  const CUresult found = OnSharedEvent(command, [&](const SharedEvent& event) {
    result.is_complete = event.IsComplete() ? 1 : 0;
    return CUDA_SUCCESS;
  });
  return Outcome(found, "querying an event among processes");
}

CallStatus CudartCalls::EventDestroy(const wire::EventDestroy& command) {
  return Outcome(events_.Destroy(command.event), "cudaEventDestroy");
}

CallStatus CudartCalls::EventRecord(const wire::EventRecord& command) {
  // The mark goes first: whoever has waited for the event then finds it marked.
  CallStatus marked = Marked({}, command.stream, command.slot, command.value);
  if (!marked.ok()) return marked;
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) result = events_.Record(command.event, stream);
  return Outcome(result, "cudaEventRecord");
}

CallStatus CudartCalls::EventImport(const wire::EventImport& command) {
  return Outcome(events_.Import(command.event, command.completed_ns), "event of another GPU");
}

CallStatus CudartCalls::EventSynchronize(const wire::EventSynchronize& command,
                                         wire::EventSynchronizeResult&) {
  return Outcome(events_.Synchronize(command.event), "cudaEventSynchronize");
}

CallStatus CudartCalls::EventElapsedTime(const wire::EventElapsedTime& command,
                                         wire::EventElapsedTimeResult& result) {
  return Outcome(events_.ElapsedTime(command.start, command.end, result.milliseconds),
                 "cudaEventElapsedTime");
}

CallStatus CudartCalls::DeviceSynchronize(const wire::DeviceSynchronize&,
                                          wire::DeviceSynchronizeResult&) {
  return Outcome(streams_.Synchronize(), "cudaDeviceSynchronize");
}

CallStatus CudartCalls::DeviceSetLimit(const wire::DeviceSetLimit& command) {
  if (command.limit >= CU_LIMIT_MAX) return UnknownLimit(command.limit);
  const auto limit = static_cast<CUlimit>(command.limit);
  std::size_t current = 0;
  CUresult result = driver().CtxGetLimit(&current, limit);
  // The context is everybody's: a limit is raised for all, and never lowered under another.
  if (result == CUDA_SUCCESS && command.value > current) {
    result = driver().CtxSetLimit(limit, command.value);
  }
  if (result == CUDA_SUCCESS) limits_[command.limit] = command.value;
  return Outcome(result, "cudaDeviceSetLimit");
}

CallStatus CudartCalls::DeviceGetLimit(const wire::DeviceGetLimit& command,
                                       wire::DeviceGetLimitResult& result) {
  if (command.limit >= CU_LIMIT_MAX) return UnknownLimit(command.limit);
  const auto own = limits_.find(command.limit);
  if (own != limits_.end()) {
    result.value = own->second;
    return {};
  }
  std::size_t value = 0;
  const CUresult outcome = driver().CtxGetLimit(&value, static_cast<CUlimit>(command.limit));
  result.value = value;
  return Outcome(outcome, "cudaDeviceGetLimit");
}

}  // namespace torpor::executor
