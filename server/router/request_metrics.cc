#include "server/router/request_metrics.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <map>

#include "base/mutex.h"
#include "server/series/metric_families.h"

namespace torpor::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Registry;

constexpr std::array<const char*, 6> kOutcomes = {"ok",      "upstream_error", "rejected",
                                                  "timeout", "lost",           "cancelled"};
constexpr std::array<const char*, 3> kSources = {"resident", "host", "peer"};

struct RequestCounts {
  Duration deadline{};
  std::array<Counter*, kOutcomes.size()> requests{};  // by RequestOutcome
  std::array<Counter*, kSources.size()> grants{};     // by SwapSource
  Counter* deadline_met = nullptr;
  Histogram* duration = nullptr;
  Histogram* queue = nullptr;
  Histogram* swap = nullptr;
  Histogram* run = nullptr;
};

// A gauge for each place of bodies.
class PlaceGauges {
 public:
  explicit PlaceGauges(Family<Gauge>& family)
      : memory_(family.Add({{"place", "memory"}})), disk_(family.Add({{"place", "disk"}})) {}

  void Set(const BodyBytes& bytes) {
    memory_.Set(static_cast<double>(bytes.memory));
    disk_.Set(static_cast<double>(bytes.disk));
  }

 private:
  Gauge& memory_;
  Gauge& disk_;
};

}  // namespace

struct RequestMetrics::Series {
  RequestCounts Add(const std::string& name) {
    RequestCounts added;
    const prometheus::Labels label = {{"function", name}};
    for (std::size_t i = 0; i < kOutcomes.size(); ++i) {
      added.requests[i] = &requests.Add({{"function", name}, {"outcome", kOutcomes[i]}});
    }
    for (std::size_t i = 0; i < kSources.size(); ++i) {
      added.grants[i] = &grants.Add({{"function", name}, {"source", kSources[i]}});
    }
    added.deadline_met = &deadline_met.Add(label);
    added.duration = &duration.Add(label, SecondsBuckets());
    added.queue = &queue.Add(label, SecondsBuckets());
    added.swap = &swap.Add(label, SecondsBuckets());
    added.run = &run.Add(label, SecondsBuckets());
    return added;
  }

  void Drop(const RequestCounts& dropped) {
    for (Counter* const counter : dropped.requests) requests.Remove(counter);
    for (Counter* const counter : dropped.grants) grants.Remove(counter);
    deadline_met.Remove(dropped.deadline_met);
    duration.Remove(dropped.duration);
    queue.Remove(dropped.queue);
    swap.Remove(dropped.swap);
    run.Remove(dropped.run);
  }

  Registry registry;
  Family<Counter>& requests =
      AddCounter(registry, "torpor_requests_total", "Requests by how they ended.");
  Family<Counter>& grants =
      AddCounter(registry, "torpor_grants_total", "Leases granted, by where the image was.");
  Family<Counter>& deadline_met =
      AddCounter(registry, "torpor_deadline_met_total", "Requests answered in time.");
  Family<Histogram>& duration = AddHistogram(registry, "torpor_request_duration_seconds",
                                             "From the header until the answer is there.");
  Family<Histogram>& queue =
      AddHistogram(registry, "torpor_queue_duration_seconds", "Wait for a GPU.");
  Family<Histogram>& swap =
      AddHistogram(registry, "torpor_grant_swap_duration_seconds", "Wait for the image.");
  Family<Histogram>& run =
      AddHistogram(registry, "torpor_run_duration_seconds", "Grant to the upstream's last byte.");
  Counter& unknown_function = AddCounter(registry, "torpor_unknown_function_requests_total",
                                         "Requests that name no configured function.")
                                  .Add({});
  Gauge& connections = AddGauge(registry, "torpor_connections", "Open client connections.").Add({});
  Gauge& is_attached =
      AddGauge(registry, "torpor_router_attached", "1 while torpord is there for the router.")
          .Add({});
  PlaceGauges bodies{
      AddGauge(registry, "torpor_request_body_bytes", "Bodies of requests in the router.")};
  PlaceGauges body_limits{AddGauge(registry, "torpor_request_body_limit_bytes",
                                   "Limits of torpor_request_body_bytes.")};

  Mutex mutex;
  std::map<std::string, RequestCounts> counts ABSL_GUARDED_BY(mutex);
};

RequestMetrics::RequestMetrics() : series_(std::make_unique<Series>()) {}
RequestMetrics::~RequestMetrics() = default;

void RequestMetrics::SetFunctions(const std::map<std::string, FunctionConfig>& functions) {
  MutexLock lock(&series_->mutex);
  std::erase_if(series_->counts, [&](const auto& known) {
    const bool has_gone = !functions.contains(known.first);
    if (has_gone) series_->Drop(known.second);
    return has_gone;
  });
  for (const auto& [name, function] : functions) {
    auto found = series_->counts.find(name);
    if (found == series_->counts.end()) {
      found = series_->counts.emplace(name, series_->Add(name)).first;
    }
    found->second.deadline = function.deadline;
  }
}

void RequestMetrics::OnRequest(const RequestRecord& request) {
  MutexLock lock(&series_->mutex);
  const auto found = series_->counts.find(request.function);
  if (found == series_->counts.end()) return;
  const RequestCounts& counts = found->second;
  counts.requests.at(static_cast<std::size_t>(request.outcome))->Increment();
  counts.duration->Observe(ToSeconds(request.duration));
  if (request.outcome == RequestOutcome::kOk && request.duration <= counts.deadline) {
    counts.deadline_met->Increment();
  }
  if (!request.is_granted) return;
  counts.grants.at(static_cast<std::size_t>(request.source))->Increment();
  counts.queue->Observe(ToSeconds(request.queue));
  counts.swap->Observe(ToSeconds(request.swap));
  counts.run->Observe(ToSeconds(request.run));
}

void RequestMetrics::OnUnknownFunction() { series_->unknown_function.Increment(); }

void RequestMetrics::OnConnections(int open) { series_->connections.Set(open); }

void RequestMetrics::OnAttached(bool is_attached) { series_->is_attached.Set(is_attached ? 1 : 0); }

void RequestMetrics::OnBodies(const BodyBytes& used) { series_->bodies.Set(used); }

void RequestMetrics::OnBodyLimits(const BodyBytes& limits) { series_->body_limits.Set(limits); }

std::string RequestMetrics::Render() {
  return prometheus::TextSerializer().Serialize(series_->registry.Collect());
}

}  // namespace torpor::server
