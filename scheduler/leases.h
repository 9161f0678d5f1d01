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

// Tenancies of instances, from the choice of their GPUs to the end of the lease there. Emits Grant
// and Revoke. Not thread-safe; all that it is given must outlive it.
class Leases {
 public:
  struct Options {
    // How long an implicit lease lasts at least while a request, or another program that wants an
    // implicit lease, waits for its GPU.
    Duration implicit_quantum_for_request{};
    Duration implicit_quantum{};
  };

  Leases(NodeState& node, QueuePolicy& policy, RequestQueue& queue, GpuImages& images,
         KeepAlives& keep_alives, Options options, Outbox& outbox);

  // Makes an idle instance with a waiting request the tenant of the GPUs chosen for its shards,
  // which are free, and brings its images there.
  void Begin(Instance& lead, const GpuChoice::Chosen& chosen);
  // Takes all tenants that wait for their images as near to their leases as they get now.
  void Advance();
  // The lease, or a tenancy that did not get as far, is over: frees the GPUs. Requests under the
  // lease count as lost until they are said to be over or come again.
  void End(Instance& lead);
  // Emits Revoke, once a lease.
  void Revoke(Instance& lead);

  // Lets waiting requests run under leases that their instances have, or ends implicit leases for
  // them.
  void ServeTenants();
  // Takes a granted request out of its lease, if that has not ended, and forgets it. The lease is
  // revoked with its last request.
  void TakeBack(RequestId request);
  // Learns from a request that was answered under the instance's lease.
  void LearnRunTime(const Instance& lead);
  // Whether the lease is implicit and old enough to be ended for `request`. Asks to be woken when
  // it will be.
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
