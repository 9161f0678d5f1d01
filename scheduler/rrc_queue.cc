#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "absl/container/btree_set.h"
#include "scheduler/policies.h"
#include "scheduler/required_count.h"

namespace torpor::scheduler {
namespace {

// A required request count in millionths: sums of it are exact.
using Count = std::int64_t;
constexpr double kCountUnit = 1e6;

// Far more than any function has requests; sums over a hundred thousand functions do not overflow.
constexpr double kMaxRequired = 1e7;

Count RoundedCount(const FunctionState& function) {
  const double count = std::clamp(RequiredCount(function), -kMaxRequired, kMaxRequired);
  return std::llround(count * kCountUnit);
}

// Functions in ascending order of required counts, cut in two: the positive counts below the cut
// sum up to at most alpha of the sum of all positive counts. Functions with other counts are always
// below. Changes of counts move the cut by few steps.
class CutSequence {
 public:
  using Key = std::pair<Count, FunctionId>;
  // The last positive key below; nullopt if every positive key is above.
  using Cut = std::optional<Key>;

  void Insert(const Key& key) {
    if (key.first <= 0) return;
    keys_.insert(key);
    is_cut_ = false;
    total_ += key.first;
    if (!IsAbove(key)) below_ += key.first;
  }
  void Erase(const Key& key) {
    if (key.first <= 0) return;
    is_cut_ = false;
    total_ -= key.first;
    if (!IsAbove(key)) below_ -= key.first;
    keys_.erase(key);
  }

  // Moves the cut into place for `alpha`. Calls `on_crossing(key)` for every key passed.
  template <typename OnCrossing>
  void Recut(double alpha, const OnCrossing& on_crossing) {
    if (is_cut_ && alpha == alpha_) return;
    is_cut_ = true;
    alpha_ = alpha;
    const auto limit = static_cast<Count>(alpha * static_cast<double>(total_));
    auto above = cut_ ? keys_.upper_bound(*cut_) : keys_.begin();
    const auto move = [&](Cut cut, const Key& crossed) {
      cut_ = cut;
      on_crossing(crossed);
    };
    while (above != keys_.begin() && below_ > limit) {
      const Key crossed = *--above;
      below_ -= crossed.first;
      move(above == keys_.begin() ? Cut() : Cut(*std::prev(above)), crossed);
    }
    while (above != keys_.end() && below_ + above->first <= limit) {
      const Key crossed = *above++;
      below_ += crossed.first;
      move(crossed, crossed);
    }
  }

  bool IsAbove(const Key& key) const { return key.first > 0 && (!cut_ || key > *cut_); }

 private:
  absl::btree_set<Key> keys_;
  Cut cut_;
  bool is_cut_ = true;  // the cut is in place for alpha_
  double alpha_ = 0;
  Count total_ = 0;
  Count below_ = 0;
};

// Algorithm 2: alpha follows the ratio of compliant functions from period to period, over all the
// node's functions. Followed queue by queue, a few functions would throw alpha to and fro.
class AdaptiveAlpha {
 public:
  explicit AdaptiveAlpha(const RrcOptions& options) : options_(options), alpha_(options.alpha) {}

  // Requests of a function in a period.
  struct Record {
    std::int64_t period = -1;
    std::uint64_t finished = 0;
    std::uint64_t in_time = 0;
    bool is_compliant = true;
  };

  double value() const { return alpha_; }

  void OnOutcome(Record& record, double percentile, bool in_time, TimePoint now) {
    EndPeriods(now);
    Forget(record);
    if (record.period != period_) record = {.period = period_};
    ++record.finished;
    if (in_time) ++record.in_time;
    record.is_compliant =
        static_cast<double>(record.in_time) >= percentile * static_cast<double>(record.finished);
    ++functions_;
    if (record.is_compliant) ++compliant_;
  }

  void Forget(const Record& record) {
    if (record.period != period_) return;
    --functions_;
    if (record.is_compliant) --compliant_;
  }

 private:
  void EndPeriods(TimePoint now) {
    if (period_end_ == TimePoint()) period_end_ = now + options_.period;
    if (now < period_end_) return;
    if (functions_ > 0) Adapt(static_cast<double>(compliant_) / functions_);
    ++period_;
    functions_ = 0;
    compliant_ = 0;
    const auto passed = (now - period_end_) / options_.period;
    period_end_ += (passed + 1) * options_.period;
  }

  void Adapt(double ratio) {
    const double change = ratio - last_ratio_.value_or(ratio);
    last_ratio_ = ratio;
    if (change > options_.threshold) alpha_ = std::min(alpha_ * options_.scalar, 1.0);
    if (change < -options_.threshold) alpha_ /= options_.scalar;
  }

  const RrcOptions options_;
  double alpha_;
  std::int64_t period_ = 0;
  TimePoint period_end_{};
  int functions_ = 0;  // with requests in this period
  int compliant_ = 0;  // among `functions_`
  std::optional<double> last_ratio_;
};

class RrcQueue final : public QueuePolicy {
 public:
  explicit RrcQueue(std::shared_ptr<AdaptiveAlpha> alpha) : alpha_(std::move(alpha)) {}

  void Add(const Instance& instance, const NodeState& node, TimePoint) override {
    Entry& entry = EntryOf(node.FunctionOf(instance));
    const Turn turn = *instance.queued_as;
    entry.waiting.push_back(PlaceOf(entry, instance.id, turn));
    GroupOf(entry.is_high, turn).insert(entry.waiting.back());
  }

  void Remove(const Instance& instance, const NodeState&, TimePoint) override {
    Entry& entry = entries_.at(instance.function);
    const auto place =
        std::find_if(entry.waiting.begin(), entry.waiting.end(),
                     [&](const Place& waiting) { return waiting.instance == instance.id; });
    GroupOf(entry.is_high, place->turn).erase(*place);
    entry.waiting.erase(place);
  }
  bool is_empty() const override { return entries_.empty(); }

  std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>&, const NodeState&,
                                TimePoint) override {
    // Outcomes in another queue may have changed alpha.
    Recut();
    std::vector<InstanceId> first;
    for (const Group* const group : {&high_, &low_, &late_}) {
      for (auto place = group->begin(); place != group->end() && first.size() < count; ++place) {
        first.push_back(place->instance);
      }
    }
    return first;
  }

  bool IsBefore(const Instance& a, const Instance& b, const NodeState&, TimePoint) const override {
    const auto rank = [this](const Instance& instance) {
      const auto entry = entries_.find(instance.function);
      const bool is_high = entry == entries_.end() || entry->second.is_high;
      const Count count = entry == entries_.end() ? 0 : entry->second.key.first;
      const Turn turn = instance.waiting.begin()->first;
      return std::tuple(turn.is_late, !is_high, is_high ? -count : count, turn);
    };
    return rank(a) < rank(b);
  }

  void OnOutcome(const FunctionState& function, std::optional<bool> in_time,
                 TimePoint now) override {
    Entry& entry = EntryOf(function);
    if (in_time) {
      alpha_->OnOutcome(entry.record, function.objective.percentile, *in_time, now);
    }
    const Count count = RoundedCount(function);
    if (count != entry.key.first) {
      const bool was_high = entry.is_high;
      sequence_.Erase(entry.key);
      entry.key.first = count;
      sequence_.Insert(entry.key);
      entry.is_high = !sequence_.IsAbove(entry.key);
      Relocate(entry, was_high);
    }
    Recut();
  }

  void Forget(const FunctionState& function) override {
    const auto entry = entries_.find(function.id);
    if (entry == entries_.end()) return;
    alpha_->Forget(entry->second.record);
    sequence_.Erase(entry->second.key);
    entries_.erase(entry);
    Recut();
  }

  std::optional<Standing> StandingOf(const FunctionState& function) const override {
    const auto entry = entries_.find(function.id);
    if (entry == entries_.end()) return Standing{.alpha = alpha_->value()};
    return Standing{.required_count = static_cast<double>(entry->second.key.first) / kCountUnit,
                    .is_high = entry->second.is_high,
                    .alpha = alpha_->value()};
  }

 private:
  // An instance's place in a group, the least first.
  struct Place {
    Count order = 0;
    Turn turn;
    InstanceId instance;

    friend auto operator<=>(const Place&, const Place&) = default;  // NOLINT: see Turn
  };
  using Group = absl::btree_set<Place>;

  struct Entry {
    CutSequence::Key key;
    bool is_high = true;
    AdaptiveAlpha::Record record;
    std::vector<Place> waiting;
  };

  Entry& EntryOf(const FunctionState& function) {
    const auto [found, is_new] = entries_.try_emplace(function.id);
    Entry& entry = found->second;
    if (is_new) {
      entry.key = {RoundedCount(function), function.id};
      sequence_.Insert(entry.key);
      entry.is_high = !sequence_.IsAbove(entry.key);
      Recut();
    }
    return entry;
  }

  Group& GroupOf(bool is_high, const Turn& turn) {
    if (turn.is_late) return late_;
    return is_high ? high_ : low_;
  }

  // The largest count goes first in the high group, the smallest in the low group.
  static Place PlaceOf(const Entry& entry, InstanceId instance, Turn turn) {
    const Count count = entry.key.first;
    return {entry.is_high ? -count : count, turn, instance};
  }

  // Moves the waiting instances of a changed entry to their new places.
  void Relocate(Entry& entry, bool was_high) {
    for (Place& waiting : entry.waiting) {
      GroupOf(was_high, waiting.turn).erase(waiting);
      waiting = PlaceOf(entry, waiting.instance, waiting.turn);
      GroupOf(entry.is_high, waiting.turn).insert(waiting);
    }
  }

  void Recut() {
    sequence_.Recut(alpha_->value(), [this](const CutSequence::Key& crossed) {
      Entry& entry = entries_.at(crossed.second);
      entry.is_high = !entry.is_high;
      Relocate(entry, !entry.is_high);
    });
  }

  const std::shared_ptr<AdaptiveAlpha> alpha_;  // shared with other queues
  CutSequence sequence_;
  std::unordered_map<FunctionId, Entry> entries_;
  Group high_;
  Group low_;
  Group late_;
};

}  // namespace

QueueFactory RrcQueues(RrcOptions options) {
  return [alpha = std::make_shared<AdaptiveAlpha>(options)] {
    return std::make_unique<RrcQueue>(alpha);
  };
}

}  // namespace torpor::scheduler
