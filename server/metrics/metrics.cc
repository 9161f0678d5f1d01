#include "server/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "server/version.h"

namespace torpor::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;

// From a resident kernel's half millisecond to a queue that times out.
const Histogram::BucketBoundaries kSecondsBuckets = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};

constexpr std::array<const char*, 6> kOutcomes = {"ok",      "upstream_error", "rejected",
                                                  "timeout", "lost",           "cancelled"};
constexpr std::array<const char*, 3> kSources = {"resident", "host", "peer"};
constexpr std::array<const char*, 2> kPaths = {"pcie", "nvlink"};
constexpr std::array<const char*, 3> kOrigins = {"uploaded", "changed", "scratch"};
constexpr std::array<const char*, 4> kReasons = {"memory_full", "move", "requested", "keep_alive"};
constexpr std::array<const char*, 4> kWriteBackReasons = {"eviction", "move", "checkpoint", "idle"};

template <typename Enum, std::size_t N>
const char* NameOf(const std::array<const char*, N>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// A counter whose truth is kept elsewhere and only read at a scrape.
void RaiseTo(Counter& counter, double value) {
  if (value > counter.Value()) counter.Increment(value - counter.Value());
}

struct FunctionSeries {
  void SetObjective(Duration new_deadline, double new_percentile) {
    deadline = new_deadline;
    deadline_seconds->Set(ToSeconds(new_deadline));
    percentile->Set(new_percentile);
  }

  std::atomic<Duration> deadline{};  // may change while requests are counted
  Gauge* deadline_seconds = nullptr;
  Gauge* percentile = nullptr;
  Counter* in_time = nullptr;
  Counter* late = nullptr;
  std::array<Counter*, kOutcomes.size()> requests{};
  std::array<Counter*, kSources.size()> grants{};
  Counter* deadline_met = nullptr;
  Histogram* duration = nullptr;
  Histogram* queue = nullptr;
  Histogram* swap = nullptr;
  Histogram* run = nullptr;
  Counter* gpu_seconds = nullptr;
  Counter* host_byte_seconds = nullptr;
};

struct SwapSeries {
  void CountBytes(const SwapRecord& swap) const {
    bytes[0]->Increment(static_cast<double>(swap.bytes.uploaded));
    bytes[1]->Increment(static_cast<double>(swap.bytes.changed));
    bytes[2]->Increment(static_cast<double>(swap.bytes.scratch));
  }
  void CountTime(const SwapRecord& swap) const { duration->Observe(ToSeconds(swap.duration)); }

  std::array<Counter*, kOrigins.size()> bytes{};
  Histogram* duration = nullptr;
};

}  // namespace

struct Metrics::Series {
  explicit Series(const Config& config);

  Family<Counter>& AddCounter(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Family<Gauge>& AddGauge(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  Family<Histogram>& AddHistogram(const std::string& name, const std::string& help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  void AddFunctions(const Config& config);
  void AddSwaps();
  void RenderGpu(const GpuSnapshot& gpu);
  void RenderFunction(const FunctionSnapshot& function);
  void RenderObjective(const ObjectiveSnapshot& objective, const FunctionSeries& series,
                       const Labels& label);
  // What of the function is on the GPU.
  void RenderCopy(const FunctionSnapshot& function, int gpu);

  FunctionSeries* FindFunction(const std::string& name) {
    const auto found = functions.find(name);
    return found == functions.end() ? nullptr : &found->second;
  }

  prometheus::Registry registry;
  const std::string host_name = HostName();
  std::map<std::string, FunctionSeries> functions;             // constant after construction
  std::array<std::array<SwapSeries, kPaths.size()>, 2> swaps;  // in, out; by path

  Family<Counter>& evictions;
  Family<Counter>& write_back_bytes;
  Family<Counter>& executors_lost;
  Counter& unknown_function;
  Gauge& connections;
  Gauge& queued;
  Gauge& sessions;
  Gauge& host_image_bytes;
  Family<Gauge>& alpha;
  Family<Gauge>& function_queued;
  Family<Gauge>& required_requests;
  Family<Gauge>& first_group;
  Family<Gauge>& compliant;
  Family<Gauge>& pool_bytes;
  Family<Gauge>& used_bytes;
  Family<Gauge>& cached_bytes;
  Family<Gauge>& free_bytes;
  Family<Gauge>& link_rate;
  Family<Gauge>& fragmented_bytes;
  Family<Gauge>& gpu_ready;
  Family<Counter>& busy_seconds;
  Family<Gauge>& resident;
  Family<Gauge>& image_bytes;
  Family<Gauge>& function_gpu_bytes;
  Family<Gauge>& function_sessions;
  std::mutex render_mutex;
};

Metrics::Series::Series(const Config& config)
    : evictions(AddCounter("torpor_evictions_total", "Images dropped from a GPU's memory.")),
      write_back_bytes(AddCounter("torpor_write_back_bytes_total",
                                  "Changed bytes copied from a GPU to the image.")),
      executors_lost(AddCounter("torpor_executors_lost_total", "Executors that died.")),
      unknown_function(AddCounter("torpor_unknown_function_requests_total",
                                  "Requests that name no configured function.")
                           .Add({})),
      connections(AddGauge("torpor_connections", "Open client connections.").Add({})),
      queued(AddGauge("torpor_queued_requests", "Requests that wait for a GPU.").Add({})),
      sessions(AddGauge("torpor_sessions", "Open sessions of client processes.").Add({})),
      host_image_bytes(
          AddGauge("torpor_host_image_bytes", "Host memory that holds images.").Add({})),
      alpha(AddGauge("torpor_queue_alpha",
                     "Share of the required requests whose functions go first.")),
      function_queued(
          AddGauge("torpor_function_queued_requests", "Its requests that wait for a GPU.")),
      required_requests(AddGauge("torpor_function_required_requests",
                                 "Requests in time that it still needs to comply.")),
      first_group(AddGauge("torpor_function_first_group",
                           "1 while its requests are in the group that goes first.")),
      compliant(AddGauge("torpor_function_compliant", "1 while it meets its objective.")),
      pool_bytes(AddGauge("torpor_gpu_pool_bytes", "Device memory for images.")),
      used_bytes(AddGauge("torpor_gpu_used_bytes", "Device memory that allocations take.")),
      cached_bytes(AddGauge("torpor_gpu_cached_bytes",
                            "The rest of the device memory that is kept for images.")),
      free_bytes(AddGauge("torpor_gpu_free_bytes", "Device memory that is kept for nobody.")),
      link_rate(AddGauge("torpor_gpu_link_bytes_per_second",
                         "Rate from the host's pinned memory, as measured; 0: it was not.")),
      fragmented_bytes(AddGauge("torpor_gpu_fragmented_bytes",
                                "Of the free device memory what is not in one piece.")),
      gpu_ready(AddGauge("torpor_gpu_ready", "1 while the GPU's executor serves.")),
      busy_seconds(AddCounter("torpor_gpu_busy_seconds_total", "Time that a GPU was leased.")),
      resident(AddGauge("torpor_function_resident", "1 while the image is on the GPU.")),
      image_bytes(AddGauge("torpor_function_image_bytes", "Size of a function's image.")),
      function_gpu_bytes(AddGauge("torpor_function_gpu_bytes",
                                  "Device memory of a GPU that is kept for a function.")),
      function_sessions(AddGauge("torpor_function_sessions", "Open sessions of a function.")) {
  AddGauge("torpor_build_info", "1; the release is in the label.")
      .Add({{"version", Version()}})
      .Set(1);
  for (const char* reason : kReasons) evictions.Add({{"reason", reason}});
  for (const char* reason : kWriteBackReasons) write_back_bytes.Add({{"reason", reason}});
  AddFunctions(config);
  AddSwaps();
}

void Metrics::Series::AddFunctions(const Config& config) {
  auto& requests = AddCounter("torpor_requests_total", "Requests by how they ended.");
  auto& grants = AddCounter("torpor_grants_total", "Leases granted, by where the image was.");
  auto& deadline_met = AddCounter("torpor_deadline_met_total", "Requests answered in time.");
  auto& deadline = AddGauge("torpor_deadline_seconds", "The objective of a function's requests.");
  auto& percentile =
      AddGauge("torpor_objective_percentile", "Share of requests that are to meet the deadline.");
  auto& scheduled = AddCounter("torpor_scheduled_requests_total",
                               "Requests that are over, as the scheduler counts them.");
  auto& duration =
      AddHistogram("torpor_request_duration_seconds", "From the header until the answer is there.");
  auto& queue = AddHistogram("torpor_queue_duration_seconds", "Wait for a GPU.");
  auto& swap = AddHistogram("torpor_grant_swap_duration_seconds", "Wait for the image.");
  auto& run = AddHistogram("torpor_run_duration_seconds", "Grant to the upstream's last byte.");
  auto& gpu_seconds = AddCounter("torpor_gpu_seconds_total", "GPU time under lease.");
  auto& host_byte_seconds = AddCounter("torpor_host_byte_seconds_total",
                                       "Host memory for images and pinned memory, over time.");
  for (const auto& [name, function] : config.functions) {
    FunctionSeries& series = functions[name];
    const Labels label = {{"function", name}};
    for (std::size_t i = 0; i < kOutcomes.size(); ++i) {
      series.requests[i] = &requests.Add({{"function", name}, {"outcome", kOutcomes[i]}});
    }
    for (std::size_t i = 0; i < kSources.size(); ++i) {
      series.grants[i] = &grants.Add({{"function", name}, {"source", kSources[i]}});
    }
    series.deadline_seconds = &deadline.Add(label);
    series.percentile = &percentile.Add(label);
    series.SetObjective(function.deadline, function.percentile);
    series.in_time = &scheduled.Add({{"function", name}, {"deadline", "met"}});
    series.late = &scheduled.Add({{"function", name}, {"deadline", "missed"}});
    series.deadline_met = &deadline_met.Add(label);
    series.duration = &duration.Add(label, kSecondsBuckets);
    series.queue = &queue.Add(label, kSecondsBuckets);
    series.swap = &swap.Add(label, kSecondsBuckets);
    series.run = &run.Add(label, kSecondsBuckets);
    const Labels paid_by = {{"tenant", function.tenant}, {"function", name}};
    series.gpu_seconds = &gpu_seconds.Add(paid_by);
    series.host_byte_seconds = &host_byte_seconds.Add(paid_by);
  }
}

void Metrics::Series::AddSwaps() {
  auto& bytes = AddCounter("torpor_swap_bytes_total", "Bytes moved between GPU and image.");
  auto& duration = AddHistogram("torpor_swap_duration_seconds", "One swap.");
  constexpr std::array<const char*, 2> kDirections = {"in", "out"};
  for (std::size_t direction = 0; direction < kDirections.size(); ++direction) {
    for (std::size_t path = 0; path < kPaths.size(); ++path) {
      Labels labels = {{"direction", kDirections[direction]}, {"path", kPaths[path]}};
      SwapSeries& series = swaps[direction][path];
      series.duration = &duration.Add(labels, kSecondsBuckets);
      for (std::size_t origin = 0; origin < kOrigins.size(); ++origin) {
        labels["origin"] = kOrigins[origin];
        series.bytes[origin] = &bytes.Add(labels);
      }
    }
  }
}

void Metrics::Series::RenderGpu(const GpuSnapshot& gpu) {
  // Named as NVIDIA's DCGM exporter names them, so that the two join.
  const Labels labels = {
      {"gpu", std::to_string(gpu.gpu)}, {"UUID", gpu.uuid}, {"Hostname", host_name}};
  pool_bytes.Add(labels).Set(static_cast<double>(gpu.pool_bytes));
  used_bytes.Add(labels).Set(static_cast<double>(gpu.memory.used));
  cached_bytes.Add(labels).Set(static_cast<double>(gpu.memory.cached));
  free_bytes.Add(labels).Set(static_cast<double>(gpu.free_bytes));
  link_rate.Add(labels).Set(gpu.link_bytes_per_second);
  fragmented_bytes.Add(labels).Set(static_cast<double>(gpu.fragmented_bytes));
  gpu_ready.Add(labels).Set(gpu.state == "ready" ? 1 : 0);
  RaiseTo(busy_seconds.Add(labels), gpu.busy_seconds);
}

void Metrics::Series::RenderFunction(const FunctionSnapshot& function) {
  const FunctionSeries* const series = FindFunction(function.name);
  if (series == nullptr) return;
  RaiseTo(*series->host_byte_seconds, function.host_byte_seconds);
  const Labels label = {{"function", function.name}};
  image_bytes.Add(label).Set(static_cast<double>(function.image_bytes));
  function_sessions.Add(label).Set(static_cast<double>(function.sessions));
  RenderObjective(function.objective, *series, label);
}

void Metrics::Series::RenderObjective(const ObjectiveSnapshot& objective,
                                      const FunctionSeries& series, const Labels& label) {
  RaiseTo(*series.in_time, static_cast<double>(objective.in_time));
  RaiseTo(*series.late, static_cast<double>(objective.finished - objective.in_time));
  function_queued.Add(label).Set(static_cast<double>(objective.waiting));
  compliant.Add(label).Set(objective.is_compliant() ? 1 : 0);
  if (!objective.required_count) return;
  required_requests.Add(label).Set(*objective.required_count);
  first_group.Add(label).Set(objective.is_first_group ? 1 : 0);
}

void Metrics::Series::RenderCopy(const FunctionSnapshot& function, int gpu) {
  const Labels labels = {{"function", function.name}, {"gpu", std::to_string(gpu)}};
  const bool is_resident = std::ranges::count(function.resident_gpus, gpu) != 0;
  resident.Add(labels).Set(is_resident ? 1 : 0);
  const auto memory = function.memory.find(gpu);
  function_gpu_bytes.Add(labels).Set(
      memory == function.memory.end()
          ? 0
          : static_cast<double>(memory->second.used + memory->second.cached));
}

Metrics::Metrics(const Config& config) : series_(std::make_unique<Series>(config)) {}
Metrics::~Metrics() = default;

void Metrics::OnSwapIn(const SwapRecord& swap) {
  const SwapSeries& series = series_->swaps[0].at(static_cast<std::size_t>(swap.path));
  series.CountBytes(swap);
  series.CountTime(swap);
}

void Metrics::OnSwapOut(const SwapRecord& swap, WriteBackReason reason) {
  const SwapSeries& series = series_->swaps[1].at(static_cast<std::size_t>(swap.path));
  series.CountBytes(swap);
  // It is only a part of an image, for which nobody waits.
  if (reason != WriteBackReason::kIdle) series.CountTime(swap);
  series_->write_back_bytes.Add({{"reason", NameOf(kWriteBackReasons, reason)}})
      .Increment(static_cast<double>(swap.bytes.total()));
}

void Metrics::OnEviction(const std::string&, GpuIndex, EvictionReason reason) {
  series_->evictions.Add({{"reason", NameOf(kReasons, reason)}}).Increment();
}

void Metrics::OnLeaseEnded(const std::string& function, GpuIndex, Duration held, bool) {
  FunctionSeries* const series = series_->FindFunction(function);
  if (series != nullptr) series->gpu_seconds->Increment(std::max(0.0, ToSeconds(held)));
}

void Metrics::OnExecutorLost(GpuIndex gpu) {
  series_->executors_lost.Add({{"gpu", std::to_string(gpu.value)}}).Increment();
}

void Metrics::OnObjective(const std::string& function, Duration deadline, double percentile) {
  FunctionSeries* const series = series_->FindFunction(function);
  if (series != nullptr) series->SetObjective(deadline, percentile);
}

void Metrics::OnRequest(const RequestRecord& request) {
  FunctionSeries* const series = series_->FindFunction(request.function);
  if (series == nullptr) return;
  series->requests.at(static_cast<std::size_t>(request.outcome))->Increment();
  series->duration->Observe(ToSeconds(request.duration));
  if (request.outcome == RequestOutcome::kOk && request.duration <= series->deadline.load()) {
    series->deadline_met->Increment();
  }
  if (!request.is_granted) return;
  series->grants.at(static_cast<std::size_t>(request.source))->Increment();
  series->queue->Observe(ToSeconds(request.queue));
  series->swap->Observe(ToSeconds(request.swap));
  series->run->Observe(ToSeconds(request.run));
}

void Metrics::OnUnknownFunction() { series_->unknown_function.Increment(); }

void Metrics::OnConnections(int open) { series_->connections.Set(open); }

std::string Metrics::Render(const NodeSnapshot& node) {
  // Two scrapes at one time would count the same difference twice.
  const std::lock_guard lock(series_->render_mutex);
  series_->queued.Set(static_cast<double>(node.queued_requests));
  series_->sessions.Set(static_cast<double>(node.sessions));
  series_->host_image_bytes.Set(static_cast<double>(node.host_image_bytes));
  if (node.alpha) series_->alpha.Add({}).Set(*node.alpha);
  for (const GpuSnapshot& gpu : node.gpus) series_->RenderGpu(gpu);
  for (const FunctionSnapshot& function : node.functions) {
    if (series_->FindFunction(function.name) == nullptr) continue;
    series_->RenderFunction(function);
    for (const GpuSnapshot& gpu : node.gpus) series_->RenderCopy(function, gpu.gpu);
  }
  return prometheus::TextSerializer().Serialize(series_->registry.Collect());
}

}  // namespace torpor::server
