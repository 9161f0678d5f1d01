#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "scheduler/node_state.h"

namespace torpor::scheduler {

// Instances in the ascending order of a key that stays the same while they wait, in a lane for each
// GPU that some are bound to.
template <typename Key>
class TurnQueue {
 public:
  void Add(const Instance& instance, const Key& key) {
    lanes_[instance.bound_gpu].emplace(key, instance.id);
  }
  void Remove(const Instance& instance, const Key& key) {
    lanes_[instance.bound_gpu].erase({key, instance.id});
  }

  bool is_empty() const {
    return std::all_of(lanes_.begin(), lanes_.end(),
                       [](const auto& lane) { return lane.second.empty(); });
  }

  // As QueuePolicy::First.
  std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open) const {
    if (lanes_.size() == 1) return Take(count, {&lanes_.begin()->second});
    std::vector<const Lane*> lanes;
    for (const auto& [gpu, lane] : lanes_) {
      const bool is_open =
          !gpu || open.empty() || std::find(open.begin(), open.end(), *gpu) != open.end();
      if (is_open) lanes.push_back(&lane);
    }
    return Take(count, std::move(lanes));
  }

 private:
  using Lane = absl::btree_set<std::pair<Key, InstanceId>>;

  static std::vector<InstanceId> Take(std::size_t count, std::vector<const Lane*> lanes) {
    std::set<std::pair<typename Lane::value_type, std::size_t>> heads;
    std::vector<typename Lane::const_iterator> next;
    for (const Lane* const lane : lanes) {
      next.push_back(lane->begin());
      if (!lane->empty()) heads.emplace(*lane->begin(), next.size() - 1);
    }
    std::vector<InstanceId> first;
    while (first.size() < count && !heads.empty()) {
      const auto [head, lane] = *heads.begin();
      heads.erase(heads.begin());
      first.push_back(head.second);
      if (++next[lane] != lanes[lane]->end()) heads.emplace(*next[lane], lane);
    }
    return first;
  }

  std::map<std::optional<GpuIndex>, Lane> lanes_;
};

}  // namespace torpor::scheduler
