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
#include "scheduler/policy_constants.h"
#include "scheduler/recent_median.h"
#include "scheduler/recent_outcomes.h"

// The scheduler's picture of the node, which the policies read. Iterated containers are ordered,
// and hash maps serve look-ups only: the same events must lead to the same decisions. Written by
// the scheduler's parts, on the scheduler's thread.
namespace torpor::scheduler {

// A request's place in the order of arrival. A request that comes again keeps the time of the first
// arrival. Late requests that step aside come after all others.
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
  bool is_for_any = false;  // any instance of the function may serve the request
  bool is_lost = false;     // the lease has ended: the request neither waits nor is in flight
};

// Where the image of a tenancy came from.
enum class ImageSource { kResident, kPeer, kHost, kDisk };

// How long a function's requests have taken, from the start of the swap-in (or from the grant) to
// the answer: medians of the last runs.
struct RunTimes {
  std::array<RecentMedian, 4> by_source;  // an ImageSource
  RecentMedian transfer;                  // of the image from the host, beside the run

  // Whether swapping slows a run down visibly (section 5.3). True while unknown: then no neighbour
  // is disturbed by mistake. `ratio`: PolicyConstants::heavy_ratio.
  bool is_heavy(double ratio) const {
    const std::optional<Duration> resident = of(ImageSource::kResident).value();
    const std::optional<Duration> from_host = of(ImageSource::kHost).value();
    return !resident || !from_host || ToSeconds(*from_host) > ratio * ToSeconds(*resident);
  }
  const RecentMedian& of(ImageSource source) const {
    return by_source[static_cast<std::size_t>(source)];
  }
  RecentMedian& of(ImageSource source) { return by_source[static_cast<std::size_t>(source)]; }
  // The time of a run with an image from `source`; of any known run where none is known from there;
  // 0 while no run is known.
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

struct FunctionState {
  FunctionId id;
  TenantId tenant;
  Objective objective;
  int priority = 0;
  std::size_t max_waiting = 0;
  Duration keep_alive{};
  std::vector<InstanceId> instances;
  std::size_t waiting = 0;  // explicit requests
  // Explicit requests that are over, and among them the requests answered within the deadline.
  std::uint64_t finished = 0;
  std::uint64_t in_time = 0;
  RecentOutcomes recent;  // under this objective
  RunTimes run_times;
};

// A use counts 1/e as much after this time.
inline constexpr Duration kUseDecay = std::chrono::minutes(5);

// The least is evicted first. Pinned images come last.
struct EvictionRank {
  bool is_pinned = false;
  int group = 0;
  double value = 0;

  friend bool operator<(const EvictionRank& a, const EvictionRank& b) {
    return std::tie(a.is_pinned, a.group, a.value) < std::tie(b.is_pinned, b.group, b.value);
  }
  friend bool operator==(const EvictionRank&, const EvictionRank&) = default;
};

// One copy of a shard's image on a GPU, counted from the first byte to come until the last has
// left.
struct Copy {
  enum class State { kComing, kPresent, kLeaving };
  State state = State::kComing;
  Bytes bytes = 0;           // set aside on the GPU
  bool is_unsaved = false;   // a lease may have changed it since the last write-back
  bool is_saving = false;    // WriteBack is under way
  bool is_for_load = false;  // comes on an administrator's request
  // While coming: the GPU that sends the image and keeps a copy. Unset for other sources.
  std::optional<GpuIndex> source{};
  int readers = 0;                               // copies that come from this copy
  std::optional<EvictionRank> evictable_rank{};  // in Gpu::evictable, while it is there
  std::optional<EvictionRank> unsaved_rank{};    // in Gpu::unsaved
};

// A shard's GPU memory: size, copies on GPUs, and use.
struct Image {
  Bytes bytes = 0;
  bool keeps_replicas = false;  // stays where it was when another GPU fetches it
  bool is_constant = false;     // no run's changes count
  bool is_pinned = false;       // evicted only if nothing else is left
  bool is_on_disk = false;      // the host's image
  std::map<GpuIndex, Copy> copies;
  TimePoint last_used{};
  // The logarithm of the number of uses, where a use older by kUseDecay counts 1/e as much. Stated
  // for time zero, so that it changes with uses only.
  double log_use = -1e300;

  // Inline: policies ask for every GPU and waiting instance.
  bool is_present_on(GpuIndex at) const {
    const auto copy = copies.find(at);
    return copy != copies.end() && copy->second.state == Copy::State::kPresent;
  }
  // On any GPU.
  bool is_present() const {
    return std::any_of(copies.begin(), copies.end(),
                       [](const auto& copy) { return copy.second.state == Copy::State::kPresent; });
  }
  ImageSource source_without_peer() const {
    return is_on_disk ? ImageSource::kDisk : ImageSource::kHost;
  }
  // Whether the copy on `at` lacks what a lease on another GPU may have changed: a run there begins
  // with a write-back and a copy of the changes.
  bool is_behind_on(GpuIndex at) const {
    return std::any_of(copies.begin(), copies.end(), [at](const auto& copy) {
      return copy.first != at && copy.second.is_unsaved;
    });
  }
  // Counts a use; `now` is not before the last one.
  void NoteUse(TimePoint now);
};

// Why an instance waits, or waited, in the queue. Read to explain requests afterwards.
struct Wait {
  TimePoint since{};  // when the instance joined the queue
  // Waiting by choice: a GPU was free, but the placement preferred a busy one with the image. How
  // long altogether, since when this time, and for which GPU.
  Duration by_choice{};
  std::optional<TimePoint> chosen_at{};
  std::optional<GpuIndex> awaited{};
  bool has_revoked = false;  // an implicit lease was ended for the instance

  Duration by_choice_until(TimePoint now) const {
    return by_choice + (chosen_at ? now - *chosen_at : Duration::zero());
  }
};

// Idle; a tenant whose images come; a tenant with a lease; a tenant asked to give the lease back.
enum class Phase { kIdle, kPlacing, kLeased, kRevoked };

// The time for which a shard has a GPU to itself: while its image comes, while its instance holds
// the lease, and until the lease has ended. Every shard has a phase and a GPU; the other fields are
// used in the lead shard only, for the lease as a whole.
struct Tenancy {
  Phase phase = Phase::kIdle;
  GpuIndex gpu;  // valid unless idle
  bool is_implicit = false;
  ImageSource image_source = ImageSource::kResident;
  // When the run began whose time is to be learned: with the swap-in, or with the grant. Unset if
  // the time would teach nothing, as with requests that joined.
  std::optional<TimePoint> run_since;
  TimePoint granted_at{};
  std::set<RequestId> requests;  // granted under this lease and not over

  bool is_idle() const { return phase == Phase::kIdle; }
};

// A shard: one device's share of an instance. An instance with several GPUs has a lead shard, whose
// id is the instance's, and secondary shards. Requests wait for the lead shard.
struct Instance {
  InstanceId id;
  FunctionId function;
  InstanceId lead;                           // the lead shard of the instance, perhaps this shard
  std::vector<InstanceId> secondary_shards;  // of a lead shard
  int max_in_flight = 1;                     // explicit requests under one lease
  Health health = Health::kServing;          // of a lead shard
  std::optional<GpuIndex> bound_gpu;         // the only GPU, if bound; see BindingPolicy
  std::set<GpuIndex> unserved_on;            // GPUs without the executor that serves the instance
  Image image;
  Tenancy tenancy;
  std::map<Turn, RequestId> waiting;
  std::optional<Turn> queued_as;  // turn of the first request, while the instance is in the queue
  Wait wait;                      // now, or before the last tenancy

  // Whether the instance has this shard only. Images of shared instances never come from other
  // GPUs.
  bool is_alone() const { return lead == id && secondary_shards.empty(); }
};

// The first to be evicted first.
using EvictionOrder = absl::btree_set<std::pair<EvictionRank, InstanceId>>;

struct Gpu {
  GpuIndex id;
  bool is_up = false;
  Bytes capacity = 0;             // kept while the GPU is down
  Bytes used = 0;                 // by all copies, coming and leaving ones included
  Bytes leaving = 0;              // the part of `used` by leaving copies
  InstanceId tenant;              // the shard whose tenancy this is; invalid: the GPU is free
  TimePoint free_since{};         // valid without a tenant
  InstanceId loading;             // the shard whose image comes from the host; invalid: none
  TimePoint loading_since{};      // valid while loading
  bool loads_from_disk = false;   // likewise: by way of the host
  std::vector<GpuIndex> sources;  // of images, faster than the host, the fastest first
  std::optional<int> pcie_switch;
  int swaps = 0;  // copies that come or leave
  int saves = 0;  // copies that are written back
  EvictionOrder evictable;
  EvictionOrder unsaved;  // the evictable images with changes to write back
  // Since when the GPU has had no tenant, no swap and no waiting instance that fits. Kept only if
  // idle GPUs write back.
  std::optional<TimePoint> idle_since;

  Bytes free_bytes() const { return capacity - used; }
  // Free bytes once every leaving copy has left.
  Bytes free_later() const { return free_bytes() + leaving; }
};

struct NodeState {
  std::map<GpuIndex, Gpu> gpus;
  std::unordered_map<FunctionId, FunctionState> functions;
  std::unordered_map<TenantId, Tenant> tenants;  // of another weight than a new one
  std::unordered_map<InstanceId, Instance> instances;
  std::unordered_map<RequestId, Request> requests;  // waiting, in flight, or lost
  double heavy_ratio = PolicyConstants().heavy_ratio;

  const FunctionState& FunctionOf(const Instance& instance) const {
    return functions.at(instance.function);
  }
  bool IsHeavy(const FunctionState& function) const {
    return function.run_times.is_heavy(heavy_ratio);
  }
  double WeightOf(TenantId tenant) const {
    const auto found = tenants.find(tenant);
    return found == tenants.end() ? Tenant().weight : found->second.weight;
  }
  // Expected time of a run that begins now.
  Duration ExpectedRun(const Instance& instance) const {
    return FunctionOf(instance).run_times.expected(instance.image.is_present()
                                                       ? ImageSource::kResident
                                                       : instance.image.source_without_peer());
  }
  Instance& LeadOf(InstanceId shard) { return instances.at(instances.at(shard).lead); }
  const Instance& LeadOf(InstanceId shard) const { return instances.at(instances.at(shard).lead); }
  // Calls `with_shard(Instance&)` for the lead shard, then for the secondary ones.
  template <typename Do>
  void ForEachShard(Instance& lead, const Do& with_shard) {
    with_shard(lead);
    for (const InstanceId id : lead.secondary_shards) with_shard(instances.at(id));
  }
  template <typename Do>
  void ForEachShard(const Instance& lead, const Do& with_shard) const {
    with_shard(lead);
    for (const InstanceId id : lead.secondary_shards) with_shard(instances.at(id));
  }
  // Size of the largest GPU that ever served; 0 before the first.
  Bytes LargestCapacity() const;
  // Whether a shard is larger than any GPU. False before the first GPU has served.
  bool IsTooLarge(const Instance& lead) const;
  // Whether a known request waits, and so neither runs nor is lost.
  bool IsWaiting(const Request& request) const {
    return instances.at(request.instance).waiting.count(request.turn) > 0;
  }
  // The instance's next request. The instance must have a waiting one.
  const Request& FirstOf(const Instance& instance) const {
    return requests.at(instance.waiting.begin()->second);
  }
};

}  // namespace torpor::scheduler
