#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/units.h"

// The scheduler's picture of the node, which its policies read. Ordered containers only: the
// same events must lead to the same decisions.
namespace torpor::scheduler {

struct Request {
  RequestId request;
  InstanceId instance;
  TimePoint arrival;
  TimePoint deadline;
  bool is_implicit = false;
  std::uint64_t sequence = 0;  // order of arrival
};

struct Copy {
  enum class State { kComing, kPresent, kLeaving };
  State state = State::kComing;
  Bytes bytes = 0;          // set aside on the GPU
  bool is_unsaved = false;  // a lease may have changed it since it was written back
  bool is_saving = false;   // WriteBack is under way
};

struct Instance {
  // A tenant has a GPU to itself: while its image comes, while it holds the lease, and until
  // that has ended.
  enum class Phase { kIdle, kPlacing, kLeased, kRevoked };

  InstanceId id;
  // Whose lease it shares: itself, or of a companion the instance that it belongs to.
  InstanceId leader;
  std::vector<InstanceId> companions;
  int max_in_flight = 1;
  Bytes image_bytes = 0;
  std::map<GpuIndex, Copy> copies;
  bool is_pinned = false;
  bool is_load_wanted = false;
  std::optional<GpuIndex> load_gpu;  // where to, once that is decided
  Phase phase = Phase::kIdle;
  GpuIndex gpu;  // while it is a tenant
  bool lease_is_implicit = false;
  TimePoint leased_at{};
  TimePoint last_used{};
  std::set<RequestId> in_flight;

  // Whether no other GPU of its lease uses its memory: else a copy elsewhere is nobody's.
  bool is_alone() const { return leader == id && companions.empty(); }
};

struct Gpu {
  GpuIndex id;
  bool is_up = false;
  Bytes capacity = 0;             // also while it is down: it comes back with the same
  Bytes used = 0;                 // by all copies, those that come and leave included
  InstanceId tenant;              // may be a companion
  std::vector<GpuIndex> sources;  // of images, faster than the host, the fastest first
  // Since when it has nothing to do: no tenant, no swap, nobody who waits and could have it. Kept
  // only where images are to be written back then.
  std::optional<TimePoint> idle_since;

  Bytes free_bytes() const { return capacity - used; }
};

struct NodeState {
  std::map<GpuIndex, Gpu> gpus;
  std::map<InstanceId, Instance> instances;
  std::map<RequestId, Request> waiting;
};

}  // namespace torpor::scheduler
