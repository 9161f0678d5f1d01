#pragma once

#include <map>
#include <vector>

#include "scheduler/scheduler.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/task_loop.h"

namespace torpor::server {

// Keeps FunctionInstance::placement: records how instances come to their GPUs, as the scheduler
// decides. On the controller's thread.
class PlacementLog {
 public:
  // All must outlive the log.
  PlacementLog(InstanceTable& instances, const scheduler::Scheduler& scheduler, TaskLoop& loop)
      : instances_(instances), scheduler_(scheduler), loop_(loop) {}

  // `event` is about to reach the scheduler. Forgets a tenancy that ends, because the same instance
  // may get the GPUs again at once, by a new placement.
  void Before(const scheduler::Event& event);
  // The scheduler has decided; no action is carried out yet.
  void After(const scheduler::Actions& decided);

 private:
  void NoteTenants();
  // Records evictions and swap-ins caused by placements.
  void Note(const scheduler::SwapOut& action);
  void Note(const scheduler::SwapIn& action);
  std::vector<InstancePlacement::Neighbour> LoadingNear(GpuIndex gpu) const;

  InstanceTable& instances_;
  const scheduler::Scheduler& scheduler_;
  TaskLoop& loop_;
  std::map<GpuIndex, InstanceId> tenants_;  // the shards noted last
};

}  // namespace torpor::server
