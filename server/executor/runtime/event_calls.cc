#include "server/executor/runtime/event_calls.h"

#include "server/executor/gpu/call_status.h"

namespace torpor::executor {

using cuda_api::CallStatus;

CallStatus EventCalls::EventCreate(const wire::EventCreate& command) {
  return ToCallStatus(device_.driver(), events_.Create(command.event, command.flags),
                      "cudaEventCreate");
}

CallStatus EventCalls::EventDestroy(const wire::EventDestroy& command) {
  return ToCallStatus(device_.driver(), events_.Destroy(command.event), "cudaEventDestroy");
}

CallStatus EventCalls::EventRecord(const wire::EventRecord& command) {
  // The mark goes first: a client that has waited for the event then finds the mark.
  CallStatus marked = marks_.Write({}, command.stream, command.slot, command.value);
  if (!marked.ok()) return marked;
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) result = events_.Record(command.event, stream);
  return ToCallStatus(device_.driver(), result, "cudaEventRecord");
}

CallStatus EventCalls::EventImport(const wire::EventImport& command) {
  return ToCallStatus(device_.driver(), events_.Import(command.event, command.completed_ns),
                      "event of another GPU");
}

CallStatus EventCalls::EventSynchronize(const wire::EventSynchronize& command,
                                        wire::EventSynchronizeResult&) {
  return ToCallStatus(device_.driver(), events_.Synchronize(command.event), "cudaEventSynchronize");
}

CallStatus EventCalls::EventElapsedTime(const wire::EventElapsedTime& command,
                                        wire::EventElapsedTimeResult& result) {
  return ToCallStatus(device_.driver(),
                      events_.ElapsedTime(command.start, command.end, result.milliseconds),
                      "cudaEventElapsedTime");
}

}  // namespace torpor::executor
