#pragma once

#include "base/ids.h"
#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/gpu/device.h"
#include "server/executor/runtime/peer_windows.h"
#include "server/executor/runtime/shared_event.h"
#include "server/executor/runtime/stream_set.h"

namespace torpor::executor {

// Carries out the commands of a session that wait for, or tell, other sessions of the function:
// through words of their windows' completion pages. Not thread-safe; call with the device current.
class SharedEventCalls final : public cuda_api::CudartSharedEventHandler {
 public:
  // All must outlive this; `windows` must also outlive the enqueued work.
  SharedEventCalls(const Device& device, StreamSet& streams, PeerWindows& windows)
      : device_(device), streams_(streams), windows_(windows) {}

  // Sets the lease under which the following commands come; see SharedEvent.
  void SetLease(LeaseId lease) { lease_ = lease; }

  cuda_api::CallStatus StreamWaitMark(const wire::StreamWaitMark& command) override;
  cuda_api::CallStatus SharedEventRecord(const wire::SharedEventRecord& command,
                                         wire::SharedEventRecordResult& result) override;
  cuda_api::CallStatus SharedEventWait(const wire::SharedEventWait& command,
                                       wire::SharedEventWaitResult& result) override;
  cuda_api::CallStatus SharedEventQuery(const wire::SharedEventQuery& command,
                                        wire::SharedEventQueryResult& result) override;

 private:
  // Returns the result of `use` with a command's event.
  template <typename Command, typename Use>
  CUresult OnSharedEvent(const Command& command, const Use& use);
  // Enqueues `work` of a command's event on the command's stream.
  template <typename Command>
  CUresult Enqueue(const Command& command, CUresult (SharedEvent::*work)(CUstream) const);

  const Device& device_;
  StreamSet& streams_;
  PeerWindows& windows_;
  LeaseId lease_;
};

}  // namespace torpor::executor
