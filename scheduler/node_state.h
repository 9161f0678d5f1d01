#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/units.h"
#include "scheduler/events.h"
#include "scheduler/recent_median.h"
#include "scheduler/recent_outcomes.h"

// The scheduler's picture of the node, which its policies read. What is iterated is ordered, and
// hash maps are only looked up in: the same events must lead to the same decisions.
namespace torpor::scheduler {

// Order of arrival; a request that comes again keeps the time of its first arrival. Those that
// step aside because they are late come after all others.
struct Turn {
  bool is_late = false;
  TimePoint arrival;
  std::uint64_t sequence = 0;

  // NOLINT: clang-tidy 14 takes the 0 of a defaulted <=> for a null pointer.
  friend auto operator<=>(const Turn&, const Turn&) = default;  // NOLINT
};

struct Request {
  RequestId request;
  InstanceId instance;
  Turn turn;
  TimePoint deadline;
  bool is_implicit = false;
  bool is_for_any = false;  // any other instance of the function may serve it as well
  bool is_lost = false;     // its lease has ended under it: it neither waits nor is in flight
};

// Where an image came from for the lease that runs on it.
enum class ImageSource { kResident, kPeer, kHost };

// What requests of a function have taken, from the start of the swap, if one was needed, to the
// answer.
struct RunTimes {
  std::array<RecentMedian, 3> by_source;  // an ImageSource
  RecentMedian transfer;                  // of the image from the host, which goes on while it runs

  // Whether swapping slows it down visibly (section 5.3). One that is not known is taken to be:
  // nobody's neighbour is disturbed by a mistake.
  bool is_heavy() const {
    const std::optional<Duration> resident = of(ImageSource::kResident).value();
    const std::optional<Duration> from_host = of(ImageSource::kHost).value();
    return !resident || !from_host || ToSeconds(*from_host) > 1.3 * ToSeconds(*resident);
  }
  const RecentMedian& of(ImageSource source) const {
    return by_source[static_cast<std::size_t>(source)];
  }
  RecentMedian& of(ImageSource source) { return by_source[static_cast<std::size_t>(source)]; }
  // With an image from there, or else from anywhere; 0 while nothing is known.
  Duration expected(ImageSource source) const {
    if (of(source).value()) return *of(source).value();
    for (const RecentMedian& time : by_source) {
      if (time.value()) return *time.value();
    }
    return Duration::zero();
  }
};

struct Tenant {
  double weight = 1;
};

struct Function {
  FunctionId id;
  TenantId tenant;
  Objective objective;
  int priority = 0;
  std::size_t max_waiting = 0;
  Duration keep_alive{};
  std::vector<InstanceId> instances;
  std::size_t waiting = 0;  // explicit requests
  // Of its requests that are over, and of them those that were answered within their deadlines.
  std::uint64_t finished = 0;
  std::uint64_t in_time = 0;
  RecentOutcomes recent;  // under this objective
  RunTimes run_times;

  // How many requests in time it needs in a row to comply (section 5.2) if what is recent counts;
  // negative: it has that many to spare.
  double required_count() const {
    const double p = objective.percentile;
    return (p * static_cast<double>(recent.finished()) - static_cast<double>(recent.in_time())) /
           (1 - p);
  }
};

inline constexpr Duration kUseDecay = std::chrono::minutes(5);

// What is evicted first: the least. A pinned image only if nothing else is left.
struct EvictionRank {
  bool is_pinned = false;
  int group = 0;
  double value = 0;

  friend bool operator<(const EvictionRank& a, const EvictionRank& b) {
    return std::tie(a.is_pinned, a.group, a.value) < std::tie(b.is_pinned, b.group, b.value);
  }
  friend bool operator==(const EvictionRank&, const EvictionRank&) = default;
};

struct Copy {
  enum class State { kComing, kPresent, kLeaving };
  State state = State::kComing;
  Bytes bytes = 0;           // set aside on the GPU
  bool is_unsaved = false;   // a lease may have changed it since it was written back
  bool is_saving = false;    // WriteBack is under way
  bool is_for_load = false;  // it comes because an administrator wants it here
  // From where it comes, if that GPU keeps its copy; and how many are coming from this one so.
  std::optional<GpuIndex> source{};
  int readers = 0;
  std::optional<EvictionRank> evictable_rank{};  // in Gpu::evictable, while it is there
  std::optional<EvictionRank> unsaved_rank{};    // in Gpu::unsaved
};

// What keeps, or kept, an instance in the queue; for who asks afterwards.
struct Wait {
  TimePoint since{};  // it came there
  // A GPU was free, but it had better wait for a busy one that has its image: how long altogether,
  // since when it does so now, and for which.
  Duration by_choice{};
  std::optional<TimePoint> chosen_at{};
  std::optional<GpuIndex> awaited{};
  bool has_revoked = false;  // an implicit lease was ended for it

  Duration by_choice_until(TimePoint now) const {
    return by_choice + (chosen_at ? now - *chosen_at : Duration::zero());
  }
};

struct Instance {
  // A tenant has a GPU to itself: while its image comes, while it holds the lease, and until
  // that has ended.
  enum class Phase { kIdle, kPlacing, kLeased, kRevoked };

  InstanceId id;
  FunctionId function;
  // Whose lease it shares: itself, or of a companion the instance that it belongs to.
  InstanceId leader;
  std::vector<InstanceId> companions;
  int max_in_flight = 1;
  bool keeps_replicas = false;
  Bytes image_bytes = 0;
  std::map<GpuIndex, Copy> copies;
  std::optional<GpuIndex> bound_gpu;  // the only one it may run on, where that is decided early
  bool is_pinned = false;
  bool is_load_wanted = false;
  std::optional<GpuIndex> wanted_gpu;  // the only one that will do
  std::optional<GpuIndex> load_gpu;    // where to, once that is decided
  Phase phase = Phase::kIdle;
  GpuIndex gpu;  // while it is a tenant
  bool lease_is_implicit = false;
  ImageSource image_source = ImageSource::kResident;  // of its tenancy
  // When the run began whose time is to be learned: with the swap, or the grant.
  std::optional<TimePoint> run_since;
  TimePoint leased_at{};
  TimePoint last_used{};
  // How often in a row its image could not be brought ahead of its requests, and from when on that
  // is tried again.
  int failed_cold_starts = 0;
  TimePoint next_cold_start{};
  std::optional<TimePoint> keep_alive_end;  // when it leaves its GPUs unless it is used again
  // The logarithm of its uses, where one that is older by kUseDecay counts 1/e as much: as of time
  // zero, so that it changes with uses only.
  double log_use = -1e300;
  std::map<Turn, RequestId> waiting;
  std::optional<Turn> queued_as;  // its first request's turn, while it stands in the queue
  Wait wait;                      // there, or before its last tenancy
  std::set<RequestId> in_flight;

  // Whether no other GPU of its lease uses its memory: else a copy elsewhere is nobody's.
  bool is_alone() const { return leader == id && companions.empty(); }
  bool is_present_on(GpuIndex at) const {
    const auto copy = copies.find(at);
    return copy != copies.end() && copy->second.state == Copy::State::kPresent;
  }
};

// The first to be evicted first.
using EvictionOrder = absl::btree_set<std::pair<EvictionRank, InstanceId>>;

struct Gpu {
  GpuIndex id;
  bool is_up = false;
  Bytes capacity = 0;             // also while it is down: it comes back with the same
  Bytes used = 0;                 // by all copies, those that come and leave included
  Bytes leaving = 0;              // of them by those that leave
  Bytes bound = 0;                // by the images of instances that may run only here
  InstanceId tenant;              // may be a companion
  TimePoint free_since{};         // while there is none
  InstanceId loading;             // whose image comes from the host
  TimePoint loading_since{};      // while there is one
  std::vector<GpuIndex> sources;  // of images, faster than the host, the fastest first
  std::optional<int> pcie_switch;
  int swaps = 0;  // copies that come or leave
  int saves = 0;  // copies that are written back
  EvictionOrder evictable;
  EvictionOrder unsaved;  // of them, what is to be written back
  // Since when it has nothing to do: no tenant, no swap, nobody who waits and could have it. Kept
  // only where images are to be written back then.
  std::optional<TimePoint> idle_since;

  Bytes free_bytes() const { return capacity - used; }
  // Once all that leaves has left.
  Bytes free_later() const { return free_bytes() + leaving; }
};

struct NodeState {
  std::map<GpuIndex, Gpu> gpus;
  std::unordered_map<FunctionId, Function> functions;
  std::unordered_map<TenantId, Tenant> tenants;
  std::unordered_map<InstanceId, Instance> instances;
  std::unordered_map<RequestId, Request> requests;  // that wait, are in flight, or were lost

  const Function& FunctionOf(const Instance& instance) const {
    return functions.at(instance.function);
  }
  double WeightOf(TenantId tenant) const {
    const auto found = tenants.find(tenant);
    return found == tenants.end() ? 1 : found->second.weight;
  }
  // What a run of the instance takes if it begins now.
  Duration ExpectedRun(const Instance& instance) const {
    const bool is_present =
        std::any_of(instance.copies.begin(), instance.copies.end(),
                    [](const auto& copy) { return copy.second.state == Copy::State::kPresent; });
    return FunctionOf(instance).run_times.expected(is_present ? ImageSource::kResident
                                                              : ImageSource::kHost);
  }
  // The request that is served next. There must be one.
  const Request& FirstOf(const Instance& instance) const {
    return requests.at(instance.waiting.begin()->second);
  }
};

}  // namespace torpor::scheduler
