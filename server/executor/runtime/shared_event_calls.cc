#include "server/executor/runtime/shared_event_calls.h"

#include <optional>

#include "server/executor/gpu/call_status.h"

namespace torpor::executor {

using cuda_api::CallStatus;

CallStatus SharedEventCalls::StreamWaitMark(const wire::StreamWaitMark& command) {
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) {
    const SessionWindow* const window = windows_.Use({command.session});
    result = window == nullptr ? CUDA_ERROR_INVALID_HANDLE
                               : window->Await(stream, command.slot, command.value);
  }
  return ToCallStatus(device_.driver(), result, "waiting for an event of another device");
}

template <typename Command, typename Use>
CUresult SharedEventCalls::OnSharedEvent(const Command& command, const Use& use) {
  SessionWindow* const window = windows_.Use({command.owner});
  if (window == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::optional<SharedEvent> event =
      SharedEvent::At(*window, command.issued_slot, command.done_slot, lease_);
  return event ? use(*event) : CUDA_ERROR_INVALID_HANDLE;
}

template <typename Command>
CUresult SharedEventCalls::Enqueue(const Command& command,
                                   CUresult (SharedEvent::*work)(CUstream) const) {
  CUstream stream = nullptr;
  if (const CUresult used = streams_.Use(command.stream, stream)) return used;
  return OnSharedEvent(command, [&](const SharedEvent& event) { return (event.*work)(stream); });
}

CallStatus SharedEventCalls::SharedEventRecord(const wire::SharedEventRecord& command,
                                               wire::SharedEventRecordResult&) {
  return ToCallStatus(device_.driver(), Enqueue(command, &SharedEvent::Record),
                      "recording an event among processes");
}

CallStatus SharedEventCalls::SharedEventWait(const wire::SharedEventWait& command,
                                             wire::SharedEventWaitResult&) {
  return ToCallStatus(device_.driver(), Enqueue(command, &SharedEvent::Await),
                      "waiting for an event among processes");
}

CallStatus SharedEventCalls::SharedEventQuery(const wire::SharedEventQuery& command,
                                              wire::SharedEventQueryResult& result) {
  const CUresult found = OnSharedEvent(command, [&](const SharedEvent& event) {
    result.is_complete = event.IsComplete() ? 1 : 0;
    return CUDA_SUCCESS;
  });
  return ToCallStatus(device_.driver(), found, "querying an event among processes");
}

}  // namespace torpor::executor
