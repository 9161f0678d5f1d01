#pragma once

#include <string>

#include "server/controller/function_strikes.h"
#include "server/controller/images/image_swaps.h"
#include "server/controller/images/peer_access.h"
#include "server/controller/implicit_requests.h"
#include "server/controller/lease_service.h"
#include "server/controller/model/event_sink.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/requests.h"

namespace torpor::server {

// Handles the death of an executor: ends its leases, marks its images lost, tells sessions and
// requests, and queues waiting requests again. On the controller's thread.
class ExecutorLosses {
 public:
  // The arguments must outlive the object.
  ExecutorLosses(ExecutorTable& executors, InstanceTable& instances, const SessionTable& sessions,
                 ImageSwaps& swaps, PeerAccess& peers, LeaseService& leases,
                 ImplicitRequests& implicit, Requests& requests, FunctionStrikes& strikes,
                 EventSink& events)
      : executors_(executors),
        instances_(instances),
        sessions_(sessions),
        swaps_(swaps),
        peers_(peers),
        leases_(leases),
        implicit_(implicit),
        requests_(requests),
        strikes_(strikes),
        events_(events) {}

  // The attached executor's process has gone, or is as good as gone.
  void Lose(GpuExecutor& executor);
  // A session's work has broken the GPU's context; the executor ends by itself.
  void OnContextLost(GpuIndex gpu, const v1::ExecutorMessage::ContextLost& what);

 private:
  void LoseImages(GpuIndex gpu);
  void LoseImage(const SessionPtr& session);

  ExecutorTable& executors_;
  InstanceTable& instances_;
  const SessionTable& sessions_;
  ImageSwaps& swaps_;
  PeerAccess& peers_;
  LeaseService& leases_;
  ImplicitRequests& implicit_;
  Requests& requests_;
  FunctionStrikes& strikes_;
  EventSink& events_;
};

}  // namespace torpor::server
