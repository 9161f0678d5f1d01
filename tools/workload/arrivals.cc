#include "tools/workload/arrivals.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tools/workload/random.h"

namespace torpor::workload {
namespace {

constexpr Duration kMinute = std::chrono::minutes(1);

struct NamedProcess {
  std::string_view name;
  ArrivalProcess process;
};
constexpr NamedProcess kProcesses[] = {{"constant", ArrivalProcess::kConstant},
                                       {"poisson", ArrivalProcess::kPoisson},
                                       {"gamma", ArrivalProcess::kGamma},
                                       {"artifact", ArrivalProcess::kArtifact}};

// Returns the end of the minute of `at`. With constant rates the whole load is a single minute.
Duration MinuteEnd(const MinuteRates& rates, Duration at, Duration length) {
  return rates.minutes() == 1 ? length : kMinute * (at / kMinute + 1);
}

// Independent arrivals of every function: gaps with a mean of 1, stretched by the rate.
class SeparateArrivals final : public ArrivalStream {
 public:
  SeparateArrivals(const ArrivalModel& model, MinuteRates rates, Duration length,
                   std::uint64_t seed)
      : process_(model.process),
        shape_(1 / (model.variation * model.variation)),
        rates_(std::move(rates)),
        length_(length) {
    randoms_.reserve(rates_.functions());
    due_.reserve(rates_.functions());
    for (std::size_t function = 0; function < rates_.functions(); ++function) {
      Random& random = randoms_.emplace_back(seed, Random::Purpose::kArrivals, function);
      Arrival first{Duration::zero(), function};
      if (Advance(FirstGap(random), &first)) due_.push_back(first);
    }
    std::make_heap(due_.begin(), due_.end(), Later);
  }

  std::optional<Arrival> Next() override {
    if (due_.empty()) return std::nullopt;
    std::pop_heap(due_.begin(), due_.end(), Later);
    const Arrival arrival = due_.back();
    if (Advance(Gap(randoms_[arrival.function]), &due_.back())) {
      std::push_heap(due_.begin(), due_.end(), Later);
    } else {
      due_.pop_back();
    }
    return arrival;
  }

 private:
  // Orders the heap by time, then by function, so that equal times have one order.
  static bool Later(const Arrival& a, const Arrival& b) {
    return a.at != b.at ? a.at > b.at : a.function > b.function;
  }

  // Draws a gap with a mean of 1.
  double Gap(Random& random) const {
    if (process_ == ArrivalProcess::kConstant) return 1;
    if (process_ == ArrivalProcess::kPoisson) return random.Exponential();
    return random.Gamma(shape_) / shape_;
  }

  // Draws the rest of the gap around the load's beginning. A long gap is the likelier: the density
  // is a gap's density times its length, for Gamma the density of a shape greater by 1.
  double FirstGap(Random& random) const {
    if (process_ == ArrivalProcess::kConstant) return random.Uniform();
    if (process_ == ArrivalProcess::kPoisson) return random.Exponential();
    return random.Uniform() * random.Gamma(shape_ + 1) / shape_;
  }

  // Moves on until `gap` more requests of the function have come on average. Returns false past the
  // end.
  bool Advance(double gap, Arrival* arrival) const {
    Duration& at = arrival->at;
    while (at < length_) {
      const double rate = rates_.At(arrival->function, static_cast<std::size_t>(at / kMinute));
      const double per_ns = rate / static_cast<double>(kMinute.count());
      const Duration end = MinuteEnd(rates_, at, length_);
      const double until_end = static_cast<double>((end - at).count()) * per_ns;
      if (gap < until_end) {
        at += Duration(std::llround(gap / per_ns));
        return at < length_;
      }
      gap -= until_end;
      at = end;
    }
    return false;
  }

  const ArrivalProcess process_;
  const double shape_;  // of the gaps, for kGamma
  const MinuteRates rates_;
  const Duration length_;
  std::vector<Random> randoms_;  // by function
  std::vector<Arrival> due_;     // the next arrival of each function; a heap, earliest on top
};

// Arrivals of all functions together, in whole milliseconds.
class ArtifactArrivals final : public ArrivalStream {
 public:
  ArtifactArrivals(MinuteRates rates, Duration length, std::uint64_t seed)
      : rates_(std::move(rates)),
        length_(length),
        random_(seed, Random::Purpose::kArrivals),
        rate_up_to_(rates_.functions()) {
    SetRates();
  }

  std::optional<Arrival> Next() override {
    if (!Advance()) return std::nullopt;
    // Below the last sum, `requests_`, so the search finds a function, and never one without
    // requests.
    const double drawn = random_.Uniform() * requests_;
    const auto function = std::upper_bound(rate_up_to_.begin(), rate_up_to_.end(), drawn);
    return Arrival{at_, static_cast<std::size_t>(function - rate_up_to_.begin())};
  }

 private:
  // Bound of a gap: 11 days.
  static constexpr double kMaxMeanGapMs = 1e9;

  // Draws a gap. A gap beyond its minute goes on in the next minute with requests, with the new
  // mean. Returns false at the end of the load.
  bool Advance() {
    if (!ReachRequests()) return false;
    auto gap_ms = static_cast<double>(random_.Poisson(mean_gap_ms_));
    while (true) {
      const Duration end = MinuteEnd(rates_, at_, length_);
      const double until_end_ms = ToMilliseconds(end - at_);
      if (gap_ms < until_end_ms) {
        at_ += std::chrono::milliseconds(std::llround(gap_ms));
        return true;
      }
      const double left = (gap_ms - until_end_ms) / mean_gap_ms_;
      EnterMinute(end);
      if (!ReachRequests()) return false;
      gap_ms = std::round(left * mean_gap_ms_);
    }
  }

  // Skips minutes without requests. Returns false at the end of the load.
  bool ReachRequests() {
    while (at_ < length_ && requests_ == 0) EnterMinute(MinuteEnd(rates_, at_, length_));
    return at_ < length_;
  }

  void EnterMinute(Duration begin) {
    at_ = begin;
    if (at_ < length_) SetRates();
  }

  // Sums up the rates of the minute of `at_` and derives the mean gap.
  void SetRates() {
    const auto minute = static_cast<std::size_t>(at_ / kMinute);
    requests_ = 0;
    for (std::size_t function = 0; function < rate_up_to_.size(); ++function) {
      requests_ += rates_.At(function, minute);
      rate_up_to_[function] = requests_;
    }
    mean_gap_ms_ = std::min(ToMilliseconds(kMinute) / requests_, kMaxMeanGapMs);
  }

  const MinuteRates rates_;
  const Duration length_;
  Random random_;
  Duration at_{};                   // time of the last request, or beginning of the minute
  std::vector<double> rate_up_to_;  // in this minute: sums over the functions up to each
  double requests_ = 0;             // in this minute
  double mean_gap_ms_ = 0;          // in this minute
};

}  // namespace

std::optional<ArrivalProcess> ParseArrivalProcess(std::string_view name) {
  for (const NamedProcess& entry : kProcesses) {
    if (entry.name == name) return entry.process;
  }
  return std::nullopt;
}

std::string_view ArrivalProcessName(ArrivalProcess process) {
  return std::find_if(std::begin(kProcesses), std::end(kProcesses),
                      [&](const NamedProcess& entry) { return entry.process == process; })
      ->name;
}

std::unique_ptr<ArrivalStream> MakeArrivals(const ArrivalModel& model, MinuteRates rates,
                                            Duration length, std::uint64_t seed) {
  TORPOR_CHECK(model.variation >= kMinVariation && model.variation <= kMaxVariation);
  // Bound of minutes for a Duration.
  TORPOR_CHECK(length <= std::chrono::hours(24 * 365 * 200));
  if (model.process != ArrivalProcess::kArtifact) {
    return std::make_unique<SeparateArrivals>(model, std::move(rates), length, seed);
  }
  return std::make_unique<ArtifactArrivals>(std::move(rates), length, seed);
}

}  // namespace torpor::workload
