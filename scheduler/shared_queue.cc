#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

// Expected run of a function without a known run.
constexpr Duration kUnknownRun = std::chrono::milliseconds(20);

// A queue for each priority and tenant.
//
// Tenants of a priority share by start-time fair queueing (Goyal, Vin, Cheng: "Start-time Fair
// Queueing", SIGCOMM 1996) with several requests under way at a time (SFQ(D): Jin, Chase, Kaur,
// "Interposed Proportional Sharing for a Storage Service Utility", SIGMETRICS 2004). A tenant's tag
// is GPU time used, divided by weight; the tenant with the least tag goes first. The virtual time
// is the tag of the tenant served last. A tenant that begins to wait catches up with the virtual
// time, so that time not used before gives no claim, and no tenant gets far ahead. Priorities do
// not share: each has a virtual time of its own.
//
// How long a request holds the GPU is known only at the end. Until then a tenancy counts for the
// expected time, or for the time already taken if longer.
class SharedQueue final : public QueuePolicy {
 public:
  explicit SharedQueue(QueueFactory make) : make_(std::move(make)) {}

  void Add(const Instance& instance, const NodeState& node, TimePoint now) override {
    const Key key = KeyOf(node.FunctionOf(instance));
    Lane& lane = LaneAt(key);
    if (!lane.IsWaiting(now)) CatchUp(key, node, now);
    ++lane.waiting;
    lane.queue->Add(instance, node, now);
  }
  void Update(const Instance& instance, const NodeState& node) override {
    LaneAt(KeyOf(node.FunctionOf(instance))).queue->Update(instance, node);
  }
  void Remove(const Instance& instance, const NodeState& node, TimePoint now) override {
    const Key key = KeyOf(node.FunctionOf(instance));
    Lane& lane = LaneAt(key);
    --lane.waiting;
    lane.waited_until = now;
    lane.queue->Remove(instance, node, now);
  }
  bool is_empty() const override { return levels_.empty(); }

  std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open,
                                const NodeState& node, TimePoint now) override {
    std::vector<InstanceId> first;
    for (const auto& [priority, level] : levels_) {
      if (first.size() == count) break;
      std::vector<InstanceId> of_level =
          FirstOf(priority, level, count - first.size(), open, node, now);
      if (first.empty()) {
        first = std::move(of_level);
      } else {
        first.insert(first.end(), of_level.begin(), of_level.end());
      }
    }
    return first;
  }

  bool IsBefore(const Instance& a, const Instance& b, const NodeState& node,
                TimePoint now) const override {
    const Key key_of_a = KeyOf(node.FunctionOf(a));
    const Key key_of_b = KeyOf(node.FunctionOf(b));
    if (key_of_a == key_of_b) {
      const Lane& lane = levels_.at(key_of_b.first).lanes.at(key_of_b.second);
      return lane.queue->IsBefore(a, b, node, now);
    }
    if (key_of_a.first != key_of_b.first) return key_of_a.first > key_of_b.first;
    return TagOf(key_of_a, node, now) < TagOf(key_of_b, node, now);
  }

  void OnOutcome(const FunctionState& function, std::optional<bool> in_time,
                 TimePoint now) override {
    LaneAt(KeyOf(function)).queue->OnOutcome(function, in_time, now);
  }

  void Forget(const FunctionState& function) override {
    const Key key = KeyOf(function);
    const auto level = levels_.find(key.first);
    if (level == levels_.end()) return;
    const auto lane = level->second.lanes.find(key.second);
    if (lane == level->second.lanes.end()) return;
    lane->second.queue->Forget(function);
    DropEmptyLanes(level);
  }

  void OnServed(const Instance& instance, const NodeState& node, TimePoint now) override {
    const Key key = KeyOf(node.FunctionOf(instance));
    PassVirtualTime(key, node, now);
    served_in_[instance.id] = key;
    LaneAt(key).tenancies.push_back({.instance = instance.id,
                                     .gpus = GpusOf(instance),
                                     .since = now,
                                     .expected = ExpectedRun(instance, node)});
  }

  void OnJoined(const Instance& instance, const NodeState& node, TimePoint now) override {
    const auto served = served_in_.find(instance.id);
    if (served == served_in_.end()) return;
    PassVirtualTime(served->second, node, now);
    Tenancy& tenancy = *LaneAt(served->second).TenancyOf(instance.id);
    tenancy.expected =
        std::max(tenancy.expected, now - tenancy.since + ExpectedRun(instance, node));
  }

  void OnReleased(const Instance& instance, const NodeState& node, TimePoint now) override {
    const auto served = served_in_.find(instance.id);
    if (served == served_in_.end()) return;
    const Key key = served->second;
    served_in_.erase(served);
    Lane& lane = LaneAt(key);
    const auto tenancy = lane.TenancyOf(instance.id);
    lane.tag += tenancy->gpus * ToSeconds(now - tenancy->since) / node.WeightOf(key.second);
    lane.tenancies.erase(tenancy);
    // The function may have moved to another lane during the tenancy, as the last of this one.
    if (key != KeyOf(node.FunctionOf(instance))) DropEmptyLanes(levels_.find(key.first));
  }

  bool IsBeyondRescue(const FunctionState& function) const override {
    const Lane* const lane = FindLane(function);
    return lane && lane->queue->IsBeyondRescue(function);
  }

  std::optional<Standing> StandingOf(const FunctionState& function) const override {
    const Lane* const lane = FindLane(function);
    return lane ? lane->queue->StandingOf(function) : std::nullopt;
  }

 private:
  using Key = std::pair<int, TenantId>;  // the priority

  struct Tenancy {
    InstanceId instance;
    double gpus = 1;
    TimePoint since;
    Duration expected{};
  };

  struct Lane {
    std::unique_ptr<QueuePolicy> queue;
    std::vector<Tenancy> tenancies{};  // at most one a GPU
    std::size_t waiting = 0;
    std::optional<TimePoint> waited_until{};
    double tag = 0;  // of ended tenancies

    // A tenant that stops and begins again at one time has not stopped.
    bool IsWaiting(TimePoint now) const { return waiting > 0 || waited_until == now; }
    std::vector<Tenancy>::iterator TenancyOf(InstanceId instance) {
      return std::find_if(tenancies.begin(), tenancies.end(),
                          [&](const Tenancy& tenancy) { return tenancy.instance == instance; });
    }
  };

  // Of one priority.
  struct Level {
    std::map<TenantId, Lane> lanes;
    double virtual_time = 0;  // in seconds, as tags
  };
  using Levels = std::map<int, Level, std::greater<>>;

  static Key KeyOf(const FunctionState& function) { return {function.priority, function.tenant}; }

  static double GpusOf(const Instance& instance) {
    return static_cast<double>(1 + instance.secondary_shards.size());
  }

  static Duration ExpectedRun(const Instance& instance, const NodeState& node) {
    const Duration run = node.ExpectedRun(instance);
    return run > Duration::zero() ? run : kUnknownRun;
  }

  Lane& LaneAt(const Key& key) {
    Lane& lane = levels_[key.first].lanes[key.second];
    if (!lane.queue) lane.queue = make_();
    return lane;
  }

  const Lane* FindLane(const FunctionState& function) const {
    const auto level = levels_.find(function.priority);
    if (level == levels_.end()) return nullptr;
    const auto lane = level->second.lanes.find(function.tenant);
    return lane == level->second.lanes.end() ? nullptr : &lane->second;
  }

  // The tag with every tenancy under way counted for `time_of(tenancy)`.
  template <typename TimeOf>
  double TagWith(const Key& key, const NodeState& node, const TimeOf& time_of) const {
    const Level& level = levels_.at(key.first);
    const auto lane = level.lanes.find(key.second);
    if (lane == level.lanes.end()) return level.virtual_time;
    double under_way = 0;
    for (const Tenancy& tenancy : lane->second.tenancies) {
      under_way += tenancy.gpus * ToSeconds(time_of(tenancy));
    }
    return lane->second.tag + under_way / node.WeightOf(key.second);
  }

  double TagOf(const Key& key, const NodeState& node, TimePoint now) const {
    return TagWith(key, node, [&](const Tenancy& tenancy) {
      return std::max(tenancy.expected, now - tenancy.since);
    });
  }

  double TagUntil(const Key& key, const NodeState& node, TimePoint now) const {
    return TagWith(key, node, [&](const Tenancy& tenancy) { return now - tenancy.since; });
  }

  void PassVirtualTime(const Key& key, const NodeState& node, TimePoint now) {
    double& virtual_time = levels_.at(key.first).virtual_time;
    virtual_time = std::max(virtual_time, TagOf(key, node, now));
  }

  // Raises the tag of a tenant that begins to wait to the virtual time.
  void CatchUp(const Key& key, const NodeState& node, TimePoint now) {
    auto& [lanes, virtual_time] = levels_.at(key.first);
    const bool was_anybody_waiting = std::any_of(
        lanes.begin(), lanes.end(), [&](const auto& lane) { return lane.second.IsWaiting(now); });
    if (!was_anybody_waiting) {
      // No tenant waited while the others used the GPUs: their use so far is forgiven.
      for (const auto& [tenant, lane] : lanes) {
        virtual_time = std::max(virtual_time, TagUntil({key.first, tenant}, node, now));
      }
    }
    lanes.at(key.second).tag += std::max(0.0, virtual_time - TagOf(key, node, now));
  }

  void DropEmptyLanes(Levels::iterator level) {
    auto& [lanes, virtual_time] = level->second;
    for (auto lane = lanes.begin(); lane != lanes.end();) {
      if (!lane->second.tenancies.empty() || !lane->second.queue->is_empty()) {
        ++lane;
        continue;
      }
      // A tenant that comes back is no nearer to a turn than before.
      virtual_time = std::max(virtual_time, lane->second.tag);
      lane = lanes.erase(lane);
    }
    if (lanes.empty()) levels_.erase(level);
  }

  // The order of service if every run takes the expected time.
  std::vector<InstanceId> FirstOf(int priority, const Level& level, std::size_t count,
                                  const std::vector<GpuIndex>& open, const NodeState& node,
                                  TimePoint now) const {
    if (level.lanes.size() == 1) {
      return level.lanes.begin()->second.queue->First(count, open, node, now);
    }
    struct Line {
      std::vector<InstanceId> instances;
      std::size_t next = 0;
      double weight = 1;
    };
    std::vector<Line> lines;
    std::set<std::pair<double, std::size_t>> heads;
    for (const auto& [tenant, lane] : level.lanes) {
      if (lane.waiting == 0) continue;
      std::vector<InstanceId> instances = lane.queue->First(count, open, node, now);
      if (instances.empty()) continue;
      heads.emplace(TagOf({priority, tenant}, node, now), lines.size());
      lines.push_back({std::move(instances), 0, node.WeightOf(tenant)});
    }
    std::vector<InstanceId> first;
    while (first.size() < count && !heads.empty()) {
      const auto [tag, index] = *heads.begin();
      heads.erase(heads.begin());
      Line& line = lines[index];
      const InstanceId next = line.instances[line.next++];
      first.push_back(next);
      if (line.next == line.instances.size()) continue;
      const Instance& instance = node.instances.at(next);
      const double seconds = GpusOf(instance) * ToSeconds(ExpectedRun(instance, node));
      heads.emplace(tag + seconds / line.weight, index);
    }
    return first;
  }

  const QueueFactory make_;
  Levels levels_;
  std::unordered_map<InstanceId, Key> served_in_;  // the lane that each tenancy counts in
};

}  // namespace

std::unique_ptr<QueuePolicy> MakeSharedQueue(QueueFactory make) {
  return std::make_unique<SharedQueue>(std::move(make));
}

}  // namespace torpor::scheduler
