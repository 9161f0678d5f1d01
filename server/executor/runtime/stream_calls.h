#pragma once

#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/gpu/device.h"
#include "server/executor/runtime/completion_marks.h"
#include "server/executor/runtime/event_set.h"
#include "server/executor/runtime/stream_set.h"

namespace torpor::executor {

// Carries out the commands about streams of a session. Not thread-safe; call with the device
// current.
class StreamCalls final : public cuda_api::CudartStreamHandler {
 public:
  // All must outlive this.
  StreamCalls(const Device& device, StreamSet& streams, EventSet& events, CompletionMarks& marks)
      : device_(device), streams_(streams), events_(events), marks_(marks) {}

  cuda_api::CallStatus StreamCreate(const wire::StreamCreate& command) override;
  cuda_api::CallStatus StreamDestroy(const wire::StreamDestroy& command) override;
  cuda_api::CallStatus StreamWaitEvent(const wire::StreamWaitEvent& command) override;
  cuda_api::CallStatus StreamMark(const wire::StreamMark& command) override;
  cuda_api::CallStatus StreamFence(const wire::StreamFence& command) override;
  cuda_api::CallStatus StreamSynchronize(const wire::StreamSynchronize& command,
                                         wire::StreamSynchronizeResult& result) override;
  cuda_api::CallStatus DeviceSynchronize(const wire::DeviceSynchronize& command,
                                         wire::DeviceSynchronizeResult& result) override;

 private:
  // Waits until all earlier work of the stream is done.
  cuda_api::CallStatus WaitFor(std::uint64_t stream_id);

  const Device& device_;
  StreamSet& streams_;
  EventSet& events_;
  CompletionMarks& marks_;
};

}  // namespace torpor::executor
