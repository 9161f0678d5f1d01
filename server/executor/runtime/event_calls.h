#pragma once

#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/gpu/device.h"
#include "server/executor/runtime/completion_marks.h"
#include "server/executor/runtime/event_set.h"
#include "server/executor/runtime/stream_set.h"

namespace torpor::executor {

// Carries out the commands about events of a session. Not thread-safe; call with the device
// current.
class EventCalls final : public cuda_api::CudartEventHandler {
 public:
  // All must outlive this.
  EventCalls(const Device& device, EventSet& events, StreamSet& streams, CompletionMarks& marks)
      : device_(device), events_(events), streams_(streams), marks_(marks) {}

  cuda_api::CallStatus EventCreate(const wire::EventCreate& command) override;
  cuda_api::CallStatus EventDestroy(const wire::EventDestroy& command) override;
  cuda_api::CallStatus EventRecord(const wire::EventRecord& command) override;
  cuda_api::CallStatus EventImport(const wire::EventImport& command) override;
  cuda_api::CallStatus EventSynchronize(const wire::EventSynchronize& command,
                                        wire::EventSynchronizeResult& result) override;
  cuda_api::CallStatus EventElapsedTime(const wire::EventElapsedTime& command,
                                        wire::EventElapsedTimeResult& result) override;

 private:
  const Device& device_;
  EventSet& events_;
  StreamSet& streams_;
  CompletionMarks& marks_;
};

}  // namespace torpor::executor
