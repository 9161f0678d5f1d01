#pragma once

#include <optional>

#include "scheduler/gpu_choice.h"
#include "scheduler/gpu_images.h"
#include "scheduler/keep_alives.h"
#include "scheduler/node_state.h"
#include "scheduler/outbox.h"
#include "scheduler/policies.h"
#include "scheduler/request_queue.h"

namespace torpor::scheduler {

// Tenancies of instances, from the choice of GPUs to the end of the lease. Emits Grant and Revoke.
// Not thread-safe; all arguments must outlive the object.
class Leases {
 public:
  struct Options {
    // Least time of an implicit lease while a request, or a program that wants an implicit lease,
    // waits for the GPU.
    Duration implicit_quantum_for_request{};
    Duration implicit_quantum{};
  };

  Leases(NodeState& node, QueuePolicy& policy, RequestQueue& queue, GpuImages& images,
         KeepAlives& keep_alives, Options options, Outbox& outbox);

  // Makes an idle instance with a waiting request the tenant of the chosen, free GPUs, and brings
  // the images there.
  void Begin(Instance& lead, const GpuChoice::Chosen& chosen);
  // Takes the next step of every tenant that waits for images: bring, grant, or end.
  void Advance();
  // Ends a lease, or a tenancy before the grant, and frees the GPUs. Requests under the lease are
  // lost until RequestGone or another RequestArrived.
  void End(Instance& lead);
  // Emits Revoke, once a lease.
  void Revoke(Instance& lead);

  // Grants waiting requests under leases that the instances hold, or revokes implicit leases for
  // them.
  void ServeTenants();
  // Forgets a granted request. The lease, if still held, is revoked with the last request.
  void TakeBack(RequestId request);
  // Learns the run time of a request answered under the instance's lease.
  void LearnRunTime(const Instance& lead);
  // Whether the holder's lease is implicit and old enough to be revoked for `request`. Asks for a
  // WakeUp at the time when the lease will be.
  bool MayRevoke(const Request& request, const Instance& holder);

 private:
  void SetPhase(Instance& lead, Phase phase);
  void Advance(Instance& shard);
  bool IsComplete(const Instance& lead) const;
  void Grant(Instance& lead);
  // Grants the first waiting request under the lease. Returns false if nothing was changed.
  bool Join(Instance& lead);
  void RevokeForOwnRequests(Instance& lead);

  NodeState& node_;
  QueuePolicy& policy_;
  RequestQueue& queue_;
  GpuImages& images_;
  KeepAlives& keep_alives_;
  const Options options_;
  Outbox& outbox_;
};

}  // namespace torpor::scheduler
