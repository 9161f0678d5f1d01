#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "scheduler/events.h"
#include "server/controller/model/instance_lease.h"
#include "server/controller/model/instance_placement.h"
#include "server/controller/model/registered_function.h"

namespace torpor::server {

// Totals of an instance since the daemon started.
struct InstanceTotals {
  std::uint64_t requests = 0;  // granted
  std::uint64_t swaps_in = 0;
  double gpu_seconds = 0;
  double host_byte_seconds = 0;
};

// How an instance stands with requests. Kept by InstanceHealth.
struct InstanceStanding {
  scheduler::Health health = scheduler::Health::kServing;  // as the scheduler knows
  TimePoint refused_until{};  // the server has refused a request, and is not asked before
  Duration refused_for{};     // 0: the last request was answered
};

// An instance of a function: all sessions opened under its token. A plain record.
struct FunctionInstance {
  InstanceId id;
  RegisteredFunction* function = nullptr;
  std::string name;
  std::string full_name;    // FullNameOf
  std::string upstream;     // host:port of its server; empty: it gets no requests
  std::string token;        // empty: none
  bool is_leaving = false;  // gets no requests and no sessions, and goes once nothing uses it
  // The scheduler's ids of the instance's shards, by device index. The first is `id`.
  std::vector<InstanceId> shards;
  // GPUs whose properties every process of the instance sees (fixed by the first GPUs that became
  // ready).
  std::vector<GpuIndex> described_as;
  std::set<SessionId> sessions;  // with memory, closing sessions included
  // Whether processes share memory: then all their images must be on the GPU for one to run.
  bool is_sharing = false;
  std::optional<InstanceLease> lease;
  InstancePlacement placement;  // of the last GPUs
  InstanceStanding standing;
  InstanceTotals totals;

  const FunctionConfig& config() const { return function->config; }
  // Whether clients replay what is lost with an executor.
  bool replays() const { return config().survives() && shards.size() == 1; }
};

// One device's share of an instance.
struct Shard {
  FunctionInstance* instance = nullptr;
  int device_index = 0;
};

}  // namespace torpor::server
