#include "server/executor/runtime/stream_calls.h"

#include "server/executor/gpu/call_status.h"

namespace torpor::executor {

using cuda_api::CallStatus;

CallStatus StreamCalls::StreamCreate(const wire::StreamCreate& command) {
  return ToCallStatus(device_.driver(),
                      streams_.Create(command.stream, command.flags, command.priority),
                      "cudaStreamCreate");
}

CallStatus StreamCalls::StreamDestroy(const wire::StreamDestroy& command) {
  return ToCallStatus(device_.driver(), streams_.Destroy(command.stream), "cudaStreamDestroy");
}

CallStatus StreamCalls::StreamWaitEvent(const wire::StreamWaitEvent& command) {
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) result = events_.Wait(command.event, stream);
  return ToCallStatus(device_.driver(), result, "cudaStreamWaitEvent");
}

CallStatus StreamCalls::StreamMark(const wire::StreamMark& command) {
  return marks_.Write({}, command.stream, command.slot, command.value);
}

CallStatus StreamCalls::StreamFence(const wire::StreamFence& command) {
  return WaitFor(command.stream);
}

CallStatus StreamCalls::StreamSynchronize(const wire::StreamSynchronize& command,
                                          wire::StreamSynchronizeResult&) {
  return WaitFor(command.stream);
}

CallStatus StreamCalls::WaitFor(std::uint64_t stream_id) {
  CUstream stream = nullptr;
  CUresult result = streams_.Use(stream_id, stream);
  if (result == CUDA_SUCCESS) result = streams_.Wait(stream);
  return ToCallStatus(device_.driver(), result, "cudaStreamSynchronize");
}

CallStatus StreamCalls::DeviceSynchronize(const wire::DeviceSynchronize&,
                                          wire::DeviceSynchronizeResult&) {
  return ToCallStatus(device_.driver(), streams_.Synchronize(), "cudaDeviceSynchronize");
}

}  // namespace torpor::executor
