#include "tools/sim/simulation.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace torpor::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr double kKeepAlivePercentile = 0.99;
// Long enough for any image to come from the host before the next request.
constexpr Duration kWarmUpGap = milliseconds(200);
constexpr Duration kWarmUpRest = seconds(1);
constexpr Duration kDrain = minutes(1);

// Sets each function's keep-alive to the p99 of the gaps between the function's requests in this
// trace.
void SetKeepAlive(const Scenario& scenario, std::vector<FunctionSpec>* functions) {
  std::vector<std::vector<std::uint32_t>> gaps_ms(functions->size());
  std::vector<std::optional<Duration>> last(functions->size());
  const auto arrivals =
      workload::MakeArrivals(scenario.arrivals, scenario.rates, scenario.length, scenario.seed);
  while (const auto arrival = arrivals->Next()) {
    std::optional<Duration>& before = last[arrival->function];
    if (before) {
      gaps_ms[arrival->function].push_back(
          static_cast<std::uint32_t>((arrival->at - *before) / milliseconds(1)));
    }
    before = arrival->at;
  }
  for (std::size_t i = 0; i < functions->size(); ++i) {
    // A function with at most one request is kept for the whole load: no gap is known.
    (*functions)[i].keep_alive =
        gaps_ms[i].empty()
            ? scenario.length
            : Duration(milliseconds(1 + Percentile(gaps_ms[i], kKeepAlivePercentile)));
  }
}

// Neighbouring functions share a node, so that models that take turns are on every node.
std::size_t NodeOf(std::size_t function, const Scenario& scenario) {
  return function * scenario.nodes / scenario.functions.size();
}

// A list of arrivals, such as the arrivals for some of the nodes.
class ListedArrivals final : public workload::ArrivalStream {
 public:
  void Add(const workload::Arrival& arrival) { arrivals_.push_back(arrival); }
  std::optional<workload::Arrival> Next() override {
    return next_ < arrivals_.size() ? std::optional(arrivals_[next_++]) : std::nullopt;
  }

 private:
  std::vector<workload::Arrival> arrivals_;
  std::size_t next_ = 0;
};

// Neighbouring nodes with their functions, on one thread. Merges arrivals and timers by time.
class Simulation final : public SimulatedNode::Observer {
 public:
  Simulation(const Scenario& scenario, const std::vector<FunctionSpec>& functions,
             std::size_t first_node, std::size_t nodes, Outcome* outcome)
      : scenario_(scenario), functions_(functions), first_node_(first_node), outcome_(*outcome) {
    for (std::size_t i = 0; i < nodes; ++i) {
      nodes_.push_back(std::make_unique<SimulatedNode>(  // NOLINT: few beside what each takes
          SimulatedNode::Setting{static_cast<std::uint16_t>(i), scenario.node, scenario.profiles,
                                 &functions_, scenario.system, scenario.seed + first_node + i,
                                 scenario.keeps_replicas},
          timers_, *this));
    }
  }

  // Warms up, runs the load, drains. `arrivals`: only of functions on these nodes.
  void Run(workload::ArrivalStream& arrivals) {
    for (std::size_t i = 0; i < functions_.size(); ++i) AddFunction(i);
    if (!scenario_.system.starts_cold) WarmUp();
    begin_ = now_;
    for (const auto& node : nodes_) node->BeginMeasurement(now_);
    Load(arrivals);
    NoteBusyTimes();
    Drain();
    for (const auto& [id, request] : requests_) ++outcome_.functions[request.function].unserved;
    for (const auto& node : nodes_) AddCounts(*node);
  }

 private:
  // A request under way. `counts`: whether the request is of the measured load. `node`: index in
  // `nodes_`.
  struct Request {
    std::uint32_t function = 0;
    std::uint16_t node = 0;
    bool counts = false;
    TimePoint arrival;
  };

  // Whether the function is on one of these nodes.
  bool IsHere(std::size_t function) const {
    if (scenario_.routing != Routing::kByFunction) return true;
    const std::size_t node = NodeOf(function, scenario_);
    return node >= first_node_ && node < first_node_ + nodes_.size();
  }

  // Adds the function to the node of its requests, or to all nodes where requests go to any node.
  void AddFunction(std::size_t function) {
    if (!IsHere(function)) return;
    if (scenario_.routing == Routing::kByFunction) {
      return nodes_[Route(function)]->AddFunction(function, now_);
    }
    for (const auto& node : nodes_) node->AddFunction(function, now_);
  }

  // Index in `nodes_` of the node for a request of the function.
  std::size_t Route(std::size_t function) const {
    if (scenario_.routing == Routing::kByFunction) {
      return NodeOf(function, scenario_) - first_node_;
    }
    const auto chosen = std::min_element(
        nodes_.begin(), nodes_.end(),
        [](const auto& a, const auto& b) { return a->outstanding() < b->outstanding(); });
    return static_cast<std::size_t>(chosen - nodes_.begin());
  }

  // A request of each function, one after the other, at the same times on every node.
  void WarmUp() {
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      if (IsHere(i)) Arrive(i, false);
      AdvanceTo(now_ + kWarmUpGap);
    }
    AdvanceTo(now_ + kWarmUpRest);
  }

  // The measured load: arrivals at their times, from `begin_` for the scenario's length.
  void Load(workload::ArrivalStream& arrivals) {
    while (const auto arrival = arrivals.Next()) {
      AdvanceTo(begin_ + arrival->at);
      Arrive(arrival->function, true);
    }
    AdvanceTo(begin_ + scenario_.length);
  }

  // Serves waiting requests for at most kDrain. Busy time is counted before.
  void Drain() {
    const TimePoint end = now_ + kDrain;
    while (!requests_.empty() && timers_.next() && *timers_.next() <= end) ExpireNext();
  }

  // `counts`: whether the request is of the measured load.
  void Arrive(std::size_t function, bool counts) {
    const RequestId id{next_request_++};
    const std::size_t node = Route(function);
    requests_[id.value] = {static_cast<std::uint32_t>(function), static_cast<std::uint16_t>(node),
                           counts, now_};
    if (counts) ++outcome_.functions[function].arrived;
    nodes_[node]->Arrive(id, function, now_);
  }

  // Ends make room for arrivals of the same moment.
  void AdvanceTo(TimePoint when) {
    while (timers_.next() && *timers_.next() <= when) ExpireNext();
    now_ = when;
  }

  // Advances the time to the next timer, which must exist, and hands the timer to the node.
  void ExpireNext() {
    const Timer timer = timers_.Take();
    now_ = timer.at;
    nodes_[timer.node]->Expire(timer);
  }

  // Records latency, deadline and path of a measured request; requests of the warm-up are not
  // recorded.
  void OnServed(RequestId id, std::size_t gpu, Path path, TimePoint now) override {
    const auto found = requests_.find(id.value);
    const Request request = found->second;
    requests_.erase(found);
    if (!request.counts) return;
    FunctionOutcome& function = outcome_.functions[request.function];
    const FunctionSpec& spec = functions_[request.function];
    const Duration latency = now - request.arrival;
    ++(latency <= spec.deadline ? function.in_time : function.late);
    const auto microseconds = static_cast<std::uint32_t>(latency / std::chrono::microseconds(1));
    function.latencies_us.push_back(microseconds);
    outcome_.nodes[first_node_ + request.node][gpu].latencies_us.push_back(microseconds);
    const auto index = static_cast<std::size_t>(path);
    ++function.paths.requests[index];
    if (path != Path::kResident) {
      function.paths.bytes[index] += scenario_.profiles->models[spec.model].parameters;
    }
  }

  // Counts a refusal of the measured load; refused requests have no latency.
  void OnRefused(RequestId id) override {
    const auto found = requests_.find(id.value);
    if (found->second.counts) ++outcome_.functions[found->second.function].refused;
    requests_.erase(found);
  }

  // Records each GPU's busy time up to now, the end of the measured load.
  void NoteBusyTimes() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      std::vector<GpuOutcome>& gpus = outcome_.nodes[first_node_ + i];
      for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
        gpus[gpu].busy = nodes_[i]->BusyTime(gpu, now_);
      }
    }
  }

  // Adds the node's events and hash to the outcome; the order of nodes matters to the hash.
  void AddCounts(const SimulatedNode& node) {
    outcome_.scheduler_events += node.scheduler_events();
    DecisionHash hash;
    hash.Add(outcome_.hash);
    hash.Add(node.hash());
    outcome_.hash = hash.value();
  }

  const Scenario& scenario_;
  const std::vector<FunctionSpec>& functions_;
  const std::size_t first_node_;
  Outcome& outcome_;
  Timers timers_;
  std::vector<std::unique_ptr<SimulatedNode>> nodes_;
  absl::flat_hash_map<std::uint64_t, Request> requests_;  // not over; by request id
  std::uint64_t next_request_ = 1;
  TimePoint now_{};
  TimePoint begin_{};
};

// Simulates nodes without common functions one after the other: one node fits a processor's cache,
// and several do not (measured for six nodes of 200 functions: together 1.7 times as long).
void SimulateOneByOne(const Scenario& scenario, const std::vector<FunctionSpec>& functions,
                      workload::ArrivalStream& arrivals, Outcome* outcome) {
  std::vector<ListedArrivals> of_node(scenario.nodes);
  while (const auto arrival = arrivals.Next()) {
    of_node[NodeOf(arrival->function, scenario)].Add(*arrival);
  }
  for (std::size_t i = 0; i < scenario.nodes; ++i) {
    Simulation(scenario, functions, i, 1, outcome).Run(of_node[i]);
  }
}

}  // namespace

Outcome Simulate(const Scenario& scenario) {
  std::vector<FunctionSpec> functions = scenario.functions;
  if (scenario.system.is_keep_alive) SetKeepAlive(scenario, &functions);
  Outcome outcome;
  outcome.functions.resize(functions.size());
  outcome.nodes.assign(scenario.nodes, std::vector<GpuOutcome>(scenario.node->gpus.size()));
  outcome.length = scenario.length;
  const auto arrivals =
      workload::MakeArrivals(scenario.arrivals, scenario.rates, scenario.length, scenario.seed);
  if (scenario.routing == Routing::kByFunction && scenario.nodes > 1) {
    SimulateOneByOne(scenario, functions, *arrivals, &outcome);
  } else {
    Simulation(scenario, functions, 0, scenario.nodes, &outcome).Run(*arrivals);
  }
  return outcome;
}

std::vector<FunctionSpec> FunctionsInTurn(const Profiles& profiles,
                                          const std::vector<std::size_t>& models,
                                          std::size_t count) {
  std::vector<FunctionSpec> functions;
  functions.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t model = models[i % models.size()];
    functions.push_back({model, profiles.models[model].deadline, {}});
  }
  return functions;
}

}  // namespace torpor::sim
