#pragma once

#include <string>
#include <vector>

#include "server/controller/domain_seats.h"
#include "server/controller/function_strikes.h"
#include "server/controller/images/image_swaps.h"
#include "server/controller/images/peer_access.h"
#include "server/controller/implicit_requests.h"
#include "server/controller/lease_service.h"
#include "server/controller/model/event_sink.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/requests.h"

namespace torpor::server {

// Handles the death of an executor: ends its domain's leases on the GPU, marks the images lost,
// tells sessions and requests, and queues waiting requests again. The GPU's last executor ends all
// leases there. On the controller's thread.
class ExecutorLosses {
 public:
  // The arguments must outlive the object.
  ExecutorLosses(ExecutorTable& executors, InstanceTable& instances, const SessionTable& sessions,
                 ImageSwaps& swaps, PeerAccess& peers, LeaseService& leases,
                 ImplicitRequests& implicit, Requests& requests, FunctionStrikes& strikes,
                 DomainSeats& seats, EventSink& events)
      : executors_(executors),
        instances_(instances),
        sessions_(sessions),
        swaps_(swaps),
        peers_(peers),
        leases_(leases),
        implicit_(implicit),
        requests_(requests),
        strikes_(strikes),
        seats_(seats),
        events_(events) {}

  // The attached executor's process has gone, or is as good as gone.
  void Lose(GpuExecutor& executor);
  // A session's work has broken the GPU's context; the executor ends by itself.
  void OnContextLost(GpuIndex gpu, const v1::ExecutorMessage::ContextLost& what);

 private:
  // Returns the instances whose leases on the GPU end with the executor.
  std::vector<InstanceId> HoldersOf(const GpuExecutor& executor, bool is_last) const;
  void LoseImages(ExecutorKey executor);
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
  DomainSeats& seats_;
  EventSink& events_;
};

}  // namespace torpor::server
