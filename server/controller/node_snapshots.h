#pragma once

#include "scheduler/scheduler.h"
#include "server/controller/images/shard_swaps.h"
#include "server/controller/lease_service.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/isolation_domains.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/spare_executors.h"
#include "server/controller/model/task_loop.h"
#include "server/controller/node_snapshot.h"
#include "server/controller/requests.h"
#include "server/repository/repository.h"

namespace torpor::server {

// Describes the controller's state for observers. On the controller's thread; changes nothing.
class NodeSnapshots {
 public:
  // The arguments must outlive the object.
  NodeSnapshots(const IsolationDomains& domains, const ExecutorTable& executors,
                const SpareExecutors& spares, const InstanceTable& instances,
                const SessionTable& sessions, const LeaseService& leases, const Requests& requests,
                const ShardSwaps& swaps, const scheduler::Scheduler& scheduler,
                const Repository& repository, const TaskLoop& loop)
      : domains_(domains),
        executors_(executors),
        spares_(spares),
        instances_(instances),
        sessions_(sessions),
        leases_(leases),
        requests_(requests),
        swaps_(swaps),
        scheduler_(scheduler),
        repository_(repository),
        loop_(loop) {}

  // Returns the whole node, but for the policy's name.
  NodeSnapshot Take() const;

 private:
  // Whether the session's memory on `gpu` is a copy beside another GPU's.
  bool IsReplica(SessionId id, GpuIndex gpu) const;
  GpuSnapshot SnapshotOf(GpuIndex index) const;
  // Fills in what the GPU's executors are, and what they have.
  void DescribeExecutors(GpuIndex index, GpuSnapshot& gpu) const;
  FunctionSnapshot SnapshotOf(const RegisteredFunction& function) const;
  InstanceSnapshot SnapshotOf(const FunctionInstance& instance) const;
  // Whether a request of the router waits for the instance.
  bool HasQueued(const scheduler::Instance& placed) const;
  // Fills in the image's GPUs and the memory reserved for it.
  void DescribeMemory(const FunctionInstance& instance, InstanceSnapshot& snapshot) const;
  ObjectiveSnapshot ObjectiveOf(const RegisteredFunction& registered) const;

  const IsolationDomains& domains_;
  const ExecutorTable& executors_;
  const SpareExecutors& spares_;
  const InstanceTable& instances_;
  const SessionTable& sessions_;
  const LeaseService& leases_;
  const Requests& requests_;
  const ShardSwaps& swaps_;
  const scheduler::Scheduler& scheduler_;
  const Repository& repository_;
  const TaskLoop& loop_;
};

}  // namespace torpor::server
