#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "scheduler/events.h"
#include "server/config/config.h"
#include "server/controller/model/instance_lease.h"
#include "server/controller/model/instance_placement.h"

namespace torpor::server {

// Totals of an instance since the daemon started.
struct InstanceTotals {
  std::uint64_t requests = 0;
  std::uint64_t errors = 0;
  std::uint64_t swaps_in = 0;
  double gpu_seconds = 0;
  double host_byte_seconds = 0;
};

// An instance of a function; a function has one today. A plain record.
struct FunctionInstance {
  InstanceId id;
  // The scheduler's ids of the instance's shards, by device index. The first is `id`.
  std::vector<InstanceId> shards;
  FunctionConfig config;
  // GPUs whose properties every process of the function sees (fixed by the first GPUs that became
  // ready).
  std::vector<GpuIndex> described_as;
  std::set<SessionId> sessions;  // with memory, closing sessions included
  // Whether processes share memory: then all their images must be on the GPU for one to run.
  bool is_sharing = false;
  std::optional<InstanceLease> lease;
  InstancePlacement placement;  // of the last GPUs
  InstanceTotals totals;

  scheduler::FunctionId function() const { return scheduler::FunctionId{id.value}; }
};

// One device's share of an instance.
struct Shard {
  FunctionInstance* instance = nullptr;
  int device_index = 0;
};

}  // namespace torpor::server
