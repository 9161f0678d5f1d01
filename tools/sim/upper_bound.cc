#include "tools/sim/upper_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace torpor::sim {
namespace {

using std::chrono::minutes;

// GPU time, memory over time, bytes from the host; each as a share of what there is of it.
constexpr std::size_t kResources = 3;
// Units: GPU seconds; bytes in GPU memory times seconds; bytes over the links to the host.
enum { kGpuTime, kMemory, kHostLinks };
using Amounts = std::array<double, kResources>;

// Lengths of stretches of the load in minutes. Of each length the busiest stretch counts.
constexpr int kStretches[] = {1, 2, 3, 5, 10};
constexpr int kSteps = 400;

// A request runs on the image kept since the request before, or fetches the image.
struct Choice {
  Amounts resident{};
  Amounts fetched{};
};

// A function's demand within a stretch.
struct Need {
  std::size_t requests = 0;  // least number in time for compliance
  std::vector<Choice> choices;
};

using Times = std::vector<std::vector<TimePoint>>;  // arrivals by function

// Draws the requests that a simulation of the scenario would have.
Times ArrivalsOf(const Scenario& scenario) {
  Times times(scenario.functions.size());
  const auto arrivals =
      workload::MakeArrivals(scenario.arrivals, scenario.rates, scenario.length, scenario.seed);
  while (const auto arrival = arrivals->Next()) {
    times[arrival->function].push_back(TimePoint() + arrival->at);
  }
  return times;
}

// The linear program of one stretch, from `begin` to `end`.
class Bound {
 public:
  Bound(const Scenario& scenario, const Times& times, TimePoint begin, TimePoint end)
      : scenario_(scenario), begin_(begin) {
    Duration latest{};
    for (const FunctionSpec& function : scenario.functions) {
      latest = std::max(latest, function.deadline);
    }
    // The last arrivals may run on until their deadlines.
    capacity_ = CapacityFor(ToSeconds(end - begin + latest));
    for (std::size_t i = 0; i < times.size(); ++i) AddNeed(i, times[i], end);
  }

  // The bound. By weak duality any prices of the resources give one: a function is worth 1,
  // complies only if the requests cost less, and the whole capacity costs the sum of the prices.
  // The prices follow the demand, and the least bound of kSteps steps counts.
  double Value() {
    Amounts prices{};
    double best = static_cast<double>(needs_.size());
    for (int step = 0; step < kSteps; ++step) {
      Amounts used{};
      best = std::min(best, ValueAt(prices, &used));
      const double size = static_cast<double>(needs_.size()) / (2.0 + step);
      for (std::size_t i = 0; i < kResources; ++i) {
        prices[i] = std::max(0.0, prices[i] + size * (used[i] - 1) / (1 + used[i]));
      }
    }
    return best;
  }

 private:
  // Returns the node's capacity of each resource over `seconds`. A switch passes at most its own
  // rate and at most the sum of its GPUs' links.
  Amounts CapacityFor(double seconds) const {
    Amounts capacity{};
    for (const NodeModel::Gpu& gpu : scenario_.node->gpus) {
      capacity[kGpuTime] += seconds;
      capacity[kMemory] += static_cast<double>(gpu.capacity) * seconds;
    }
    for (const NodeModel::Switch& entry : scenario_.node->switches) {
      double links = 0;
      for (const double link : entry.gpu_links) links += link;
      capacity[kHostLinks] += std::min(links, entry.bytes_per_s) * seconds;
    }
    return capacity;
  }

  // Adds a function's requests within the stretch, less the misses that the percentile permits over
  // the whole load.
  void AddNeed(std::size_t function, const std::vector<TimePoint>& times, TimePoint end) {
    Need need;
    const ModelProfile& model = scenario_.profiles->models[scenario_.functions[function].model];
    TimePoint before = begin_;
    for (const TimePoint time : times) {
      if (time < begin_ || time >= end) continue;
      need.choices.push_back(ChoiceFor(model, ToSeconds(time - before)));  // NOLINT
      before = time;
    }
    const double missed =
        std::floor((1 - scenario_.profiles->percentile) * static_cast<double>(times.size()) + 1e-9);
    const double requests = static_cast<double>(need.choices.size()) - missed;
    need.requests = static_cast<std::size_t>(std::max(0.0, requests));
    needs_.push_back(std::move(need));  // NOLINT: reserving needs their number only
  }

  // Returns a request's demand, as shares of the capacity, on a resident and on a fetched image.
  // `gap_s` is the time in seconds since the function's request before, or since the stretch's
  // begin: a resident image occupies memory for the gap.
  Choice ChoiceFor(const ModelProfile& model, double gap_s) const {
    const double turnover = ToSeconds(scenario_.profiles->turnover);
    Choice choice;
    choice.resident[kGpuTime] = (ToSeconds(model.resident) + turnover) / capacity_[kGpuTime];
    choice.resident[kMemory] = static_cast<double>(model.footprint) * gap_s / capacity_[kMemory];
    choice.fetched[kGpuTime] = (ToSeconds(model.host) + turnover) / capacity_[kGpuTime];
    choice.fetched[kHostLinks] = static_cast<double>(model.parameters) / capacity_[kHostLinks];
    return choice;
  }

  // Returns the cost of `amounts` at `prices`, both by resource.
  static double CostOf(const Amounts& amounts, const Amounts& prices) {
    double cost = 0;
    for (std::size_t i = 0; i < kResources; ++i) cost += amounts[i] * prices[i];
    return cost;
  }

  // Returns the bound at `prices` and adds the demand of the functions that comply at these prices
  // to `used`. Each function buys its cheapest requests; a function with a cost of 1 or more does
  // not comply.
  double ValueAt(const Amounts& prices, Amounts* used) {
    double value = prices[kGpuTime] + prices[kMemory] + prices[kHostLinks];
    for (const Need& need : needs_) {
      costs_.clear();
      for (const Choice& choice : need.choices) {
        const double resident = CostOf(choice.resident, prices);
        const double fetched = CostOf(choice.fetched, prices);
        costs_.push_back({std::min(resident, fetched),  // NOLINT: kept from function to function
                          resident <= fetched ? &choice.resident : &choice.fetched});
      }
      const auto cheapest = costs_.begin() + static_cast<std::ptrdiff_t>(need.requests);
      std::nth_element(costs_.begin(), cheapest, costs_.end());
      double cost = 0;
      for (auto one = costs_.begin(); one != cheapest; ++one) cost += one->first;
      if (cost >= 1) continue;
      value += 1 - cost;
      for (auto one = costs_.begin(); one != cheapest; ++one) {
        for (std::size_t i = 0; i < kResources; ++i) (*used)[i] += (*one->second)[i];
      }
    }
    return value;
  }

  const Scenario& scenario_;
  const TimePoint begin_;
  Amounts capacity_{};
  std::vector<Need> needs_;
  std::vector<std::pair<double, const Amounts*>> costs_;  // of one function's requests
};

// GPU time of each minute's requests on resident images.
std::vector<double> MinuteLoads(const Scenario& scenario, const Times& times) {
  std::vector<double> loads(static_cast<std::size_t>(scenario.length / minutes(1)) + 1, 0);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const ModelProfile& model = scenario.profiles->models[scenario.functions[i].model];
    for (const TimePoint time : times[i]) {
      loads[static_cast<std::size_t>(time.time_since_epoch() / minutes(1))] +=
          ToSeconds(model.resident);
    }
  }
  return loads;
}

// Returns the first minute of the `length` minutes with the largest load; 0 if the load is shorter
// than `length`.
std::size_t BusiestBegin(const std::vector<double>& loads, std::size_t length) {
  std::size_t best = 0;
  double max_sum = -1;
  for (std::size_t begin = 0; begin + length <= loads.size(); ++begin) {
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += loads[begin + i];
    if (sum <= max_sum) continue;
    max_sum = sum;
    best = begin;
  }
  return best;
}

}  // namespace

double CompliantBound(const Scenario& scenario) {
  const Times times = ArrivalsOf(scenario);
  const std::vector<double> loads = MinuteLoads(scenario, times);
  auto best = static_cast<double>(scenario.functions.size());
  for (const int length : kStretches) {
    const TimePoint begin =
        TimePoint() + minutes(BusiestBegin(loads, static_cast<std::size_t>(length)));
    best = std::min(best, Bound(scenario, times, begin, begin + minutes(length)).Value());
  }
  return best;
}

}  // namespace torpor::sim
