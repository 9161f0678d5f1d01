#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "server/controller/model/sharing_figures.h"
#include "server/controller/model/spill_figures.h"

namespace torpor::server {

// The controller's view of the node at one moment, for torporctl and the metrics endpoint.

// Memory taken by images on a GPU, or by one function's image there, as reported by the executor
// after its last operation.
struct MemorySnapshot {
  Bytes used = 0;      // allocations
  Bytes cached = 0;    // the rest of the physical memory reserved for images
  Bytes replicas = 0;  // of both: copies of images that other GPUs have, too
};

// An executor, running or to be started.
struct ExecutorSnapshot {
  std::int64_t pid = 0;                   // 0: none runs
  std::string state;                      // starting, ready, lost
  std::string domain;                     // whom it serves; empty: nobody yet
  std::vector<std::string> not_confined;  // as in its registration
};

struct GpuSnapshot {
  int gpu = 0;
  std::string name;
  std::string uuid;   // GPU-xxxxxxxx-..., as in nvidia-smi
  std::string state;  // starting, ready, lost: as of the executor that is nearest to ready
  std::vector<ExecutorSnapshot> executors;
  std::int64_t executor_pid = 0;    // of the first of them; 0: not running
  std::int64_t spare_pid = 0;       // of an executor that is ready to take over; 0: none
  std::int64_t pool_owner_pid = 0;  // 0: the executor owns the GPU's memory
  Bytes pool_bytes = 0;
  Bytes used_bytes = 0;  // given to images by the scheduler
  MemorySnapshot memory;
  Bytes free_bytes = 0;        // reserved for no image
  Bytes fragmented_bytes = 0;  // part of free_bytes: not in one piece with the rest
  Bytes swap_group_bytes = 0;
  double link_bytes_per_second = 0;  // from the host; 0: not measured
  std::uint64_t executor_restarts = 0;
  double busy_seconds = 0;
  std::string leased_to;  // function; empty when idle
};

// A function's objective and its results so far, as counted by the scheduler.
struct ObjectiveSnapshot {
  Duration deadline{};
  double percentile = 0;
  int priority = 0;
  int max_waiting = 0;         // 0: any number
  Duration keep_alive{};       // 0: for ever
  std::uint64_t waiting = 0;   // requests
  std::uint64_t finished = 0;  // requests: all but those given up before their deadlines
  std::uint64_t in_time = 0;   // of them
  // Set if the policy orders by required request count: requests in time still needed to comply,
  // and whether the function is in the group that goes first.
  std::optional<double> required_count{};
  bool is_first_group = false;

  bool is_compliant() const {
    return static_cast<double>(in_time) >= percentile * static_cast<double>(finished);
  }
};

// An instance's process, where torpord runs the function's command; together for a function: the
// state of the least, the sum of the restarts.
struct ProcessSnapshot {
  std::string state;     // pausing (before the next start), running, stopping; empty: no command
  std::int64_t pid = 0;  // 0: none, or several
  std::uint64_t restarts = 0;
  std::string last_end{};  // how the last process has ended, or why it was not started
};

// An instance, or all instances of a function together.
struct InstanceSnapshot {
  std::string name;
  std::string state;                     // absent, idle, queued, running
  std::vector<int> resident_gpus;        // ascending
  std::map<int, MemorySnapshot> memory;  // by GPU
  bool is_pinned = false;
  Bytes image_bytes = 0;
  std::uint64_t sessions = 0;
  std::uint64_t requests = 0;  // of an instance: granted ones
  double gpu_seconds = 0;
  double host_byte_seconds = 0;
  std::uint64_t swaps_in = 0;
  std::string upstream;  // empty: none
  std::string health;    // serving, unproven, down (scheduler::Health); of a function the best
  ProcessSnapshot process;
};

struct FunctionSnapshot : InstanceSnapshot {
  ObjectiveSnapshot objective;
  std::uint64_t errors = 0;
  unsigned strikes = 0;    // that are not forgiven
  Duration refused_for{};  // it gets no GPU for so long, for its strikes; 0: it may have one
  Bytes memory_limit = 0;  // of each instance; 0: all that a GPU offers
  std::vector<InstanceSnapshot> instances;  // by name; empty unless there are several
};

// The node's addresses for sessions.
struct AddressSnapshot {
  std::string mode;        // map, translate
  std::string fallback;    // why this is not the configured mode; empty: it is
  std::uint64_t base = 0;  // of GPU addresses
  Bytes bytes = 0;
  Bytes free_bytes = 0;  // owned by no session
};

// Host memory of sessions: what is allocated counts, written or not.
struct HostMemorySnapshot {
  Bytes budget = 0;
  Bytes used = 0;
  std::uint64_t refusals = 0;  // of allocations and sessions
};

struct NodeSnapshot {
  std::string state;  // starting, ready, draining
  AddressSnapshot addresses;
  HostMemorySnapshot host_memory;
  SpillFigures spills;
  SharingFigures sharing;
  std::string policy;
  std::optional<double> alpha;  // unset if the policy has none
  std::vector<GpuSnapshot> gpus;
  std::vector<FunctionSnapshot> functions;
  std::uint64_t queued_requests = 0;
  std::uint64_t sessions = 0;
  std::uint64_t swaps_in = 0;
  std::uint64_t swaps_out = 0;
  Bytes host_image_bytes = 0;
};

}  // namespace torpor::server
