#include "server/metrics/series.h"

#include <unistd.h>

#include <algorithm>

#include "scheduler/event_fields.h"
#include "server/series/metric_families.h"

namespace torpor::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Labels;
using prometheus::Registry;

constexpr std::array<const char*, 2> kPaths = {"pcie", "nvlink"};
constexpr std::array<const char*, 3> kOrigins = {"uploaded", "changed", "scratch"};
constexpr std::array<const char*, 4> kReasons = {"memory_full", "move", "requested", "keep_alive"};
constexpr std::array<const char*, 4> kWriteBackReasons = {"eviction", "move", "checkpoint", "idle"};
constexpr std::array<const char*, 3> kStrikeCauses = {"fault", "crash", "endless"};
constexpr std::array<const char*, 4> kFates = {"resumed", "expired", "refused", "dropped"};

template <typename Enum, std::size_t N>
const char* NameOf(const std::array<const char*, N>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// Raises a counter to a total counted elsewhere and read at a scrape.
void RaiseTo(Counter& counter, double value) {
  if (value > counter.Value()) counter.Increment(value - counter.Value());
}

}  // namespace

NodeSeries::NodeSeries(Registry& registry)
    : evictions_(
          AddCounter(registry, "torpor_evictions_total", "Images dropped from a GPU's memory.")),
      write_back_bytes_(AddCounter(registry, "torpor_write_back_bytes_total",
                                   "Changed bytes copied from a GPU to the image.")),
      executors_lost_(AddCounter(registry, "torpor_executors_lost_total", "Executors that died.")),
      wrong_tokens_(AddCounter(registry, "torpor_wrong_tokens_total",
                               "Tokens that clients have shown and no function has.")
                        .Add({})),
      sessions_outlived_(AddCounter(registry, "torpor_sessions_outlived_total",
                                    "Sessions that have outlived a torpord, by what came then.")),
      queued_(
          AddGauge(registry, "torpor_queued_requests", "Requests that wait for a GPU.").Add({})),
      sessions_(
          AddGauge(registry, "torpor_sessions", "Open sessions of client processes.").Add({})),
      host_image_bytes_(
          AddGauge(registry, "torpor_host_image_bytes", "Host memory that holds images.").Add({})),
      host_memory_bytes_(AddGauge(registry, "torpor_host_memory_bytes",
                                  "Host memory that functions may allocate: host_memory.")
                             .Add({})),
      host_memory_used_bytes_(AddGauge(registry, "torpor_host_memory_used_bytes",
                                       "Of it, what functions have allocated.")
                                  .Add({})),
      host_memory_refusals_(AddCounter(registry, "torpor_host_memory_refusals_total",
                                       "Allocations and sessions refused for want of it.")
                                .Add({})),
      shared_stored_bytes_(AddGauge(registry, "torpor_shared_blocks_stored_bytes",
                                    "Host memory of blocks that several images have, stored once.")
                               .Add({})),
      shared_used_bytes_(
          AddGauge(registry, "torpor_shared_blocks_used_bytes", "What images have there, added up.")
              .Add({})),
      address_mode_(AddGauge(registry, "torpor_address_mode",
                             "1 for how the GPUs address images: map or translate.")),
      address_fallback_(AddGauge(registry, "torpor_address_fallback",
                                 "1 if the driver has refused address_mode: map.")
                            .Add({})),
      address_bytes_(
          AddGauge(registry, "torpor_address_bytes", "GPU addresses set aside for all sessions.")
              .Add({})),
      free_address_bytes_(
          AddGauge(registry, "torpor_free_address_bytes", "GPU addresses that no session owns.")
              .Add({})),
      alpha_(AddGauge(registry, "torpor_queue_alpha",
                      "Share of the required requests whose functions go first.")) {
  for (const char* reason : kReasons) evictions_.Add({{"reason", reason}});
  for (const char* reason : kWriteBackReasons) write_back_bytes_.Add({{"reason", reason}});
  for (const char* fate : kFates) sessions_outlived_.Add({{"fate", fate}});
}

void NodeSeries::CountEviction(EvictionReason reason) {
  evictions_.Add({{"reason", NameOf(kReasons, reason)}}).Increment();
}

void NodeSeries::CountWriteBack(WriteBackReason reason, Bytes bytes) {
  write_back_bytes_.Add({{"reason", NameOf(kWriteBackReasons, reason)}})
      .Increment(static_cast<double>(bytes));
}

void NodeSeries::CountLostExecutor(GpuIndex gpu) {
  executors_lost_.Add({{"gpu", std::to_string(gpu.value)}}).Increment();
}

void NodeSeries::CountWrongToken() { wrong_tokens_.Increment(); }

void NodeSeries::CountOutlivedSession(OutlivedFate fate) {
  sessions_outlived_.Add({{"fate", NameOf(kFates, fate)}}).Increment();
}

void NodeSeries::Render(const NodeSnapshot& node) {
  queued_.Set(static_cast<double>(node.queued_requests));
  sessions_.Set(static_cast<double>(node.sessions));
  host_image_bytes_.Set(static_cast<double>(node.host_image_bytes));
  host_memory_bytes_.Set(static_cast<double>(node.host_memory.budget));
  host_memory_used_bytes_.Set(static_cast<double>(node.host_memory.used));
  shared_stored_bytes_.Set(static_cast<double>(node.sharing.stored));
  shared_used_bytes_.Set(static_cast<double>(node.sharing.used));
  RaiseTo(host_memory_refusals_, static_cast<double>(node.host_memory.refusals));
  if (!node.addresses.mode.empty()) address_mode_.Add({{"mode", node.addresses.mode}}).Set(1);
  address_fallback_.Set(node.addresses.fallback.empty() ? 0 : 1);
  address_bytes_.Set(static_cast<double>(node.addresses.bytes));
  free_address_bytes_.Set(static_cast<double>(node.addresses.free_bytes));
  if (node.alpha) alpha_.Add({}).Set(*node.alpha);
}

SpillSeries::SpillSeries(Registry& registry)
    : limit_bytes_(AddGauge(registry, "torpor_spill_limit_bytes",
                            "Disk space for images that leave host memory: spill_limit.")
                       .Add({})),
      bytes_(AddGauge(registry, "torpor_spilled_bytes", "Of it, what images take.").Add({})),
      images_(AddGauge(registry, "torpor_spilled_images", "Images on the disk.").Add({})),
      moves_(AddCounter(registry, "torpor_spills_total",
                        "Images moved to the disk (out) and to host memory (back).")),
      moved_bytes_(AddCounter(registry, "torpor_spill_bytes_total", "Bytes of these moves.")),
      seconds_(AddCounter(registry, "torpor_spill_seconds_total", "Time of these moves.")),
      failures_(AddCounter(registry, "torpor_spill_failures_total",
                           "Moves that the disk failed: out, the image stays in host memory; "
                           "back, it is lost.")) {}

void SpillSeries::Render(const SpillFigures& spills) {
  limit_bytes_.Set(static_cast<double>(spills.limit));
  bytes_.Set(static_cast<double>(spills.bytes));
  images_.Set(static_cast<double>(spills.images));
  Render("out", spills.out);
  Render("back", spills.back);
}

void SpillSeries::Render(const char* direction, const SpillFigures::Moves& moves) {
  const Labels labels = {{"direction", direction}};
  RaiseTo(moves_.Add(labels), static_cast<double>(moves.images));
  RaiseTo(moved_bytes_.Add(labels), static_cast<double>(moves.bytes));
  RaiseTo(seconds_.Add(labels), ToSeconds(moves.duration));
  RaiseTo(failures_.Add(labels), static_cast<double>(moves.failures));
}

SwapSeries::SwapSeries(Registry& registry) {
  static_assert(kPathCount == kPaths.size() && kOriginCount == kOrigins.size());
  auto& bytes =
      AddCounter(registry, "torpor_swap_bytes_total", "Bytes moved between GPU and image.");
  auto& duration = AddHistogram(registry, "torpor_swap_duration_seconds", "One swap.");
  constexpr std::array<const char*, 2> kDirections = {"in", "out"};
  for (std::size_t direction = 0; direction < kDirections.size(); ++direction) {
    for (std::size_t path = 0; path < kPaths.size(); ++path) {
      Labels labels = {{"direction", kDirections[direction]}, {"path", kPaths[path]}};
      Link& link = links_[direction][path];
      link.duration = &duration.Add(labels, SecondsBuckets());
      for (std::size_t origin = 0; origin < kOrigins.size(); ++origin) {
        labels["origin"] = kOrigins[origin];
        link.bytes[origin] = &bytes.Add(labels);
      }
    }
  }
}

void SwapSeries::Link::CountBytes(const SwapRecord& swap) const {
  bytes[0]->Increment(static_cast<double>(swap.bytes.uploaded));
  bytes[1]->Increment(static_cast<double>(swap.bytes.changed));
  bytes[2]->Increment(static_cast<double>(swap.bytes.scratch));
}

void SwapSeries::Link::CountTime(const SwapRecord& swap) const {
  duration->Observe(ToSeconds(swap.duration));
}

void SwapSeries::CountSwapIn(const SwapRecord& swap) {
  const Link& link = links_[0].at(static_cast<std::size_t>(swap.path));
  link.CountBytes(swap);
  link.CountTime(swap);
}

void SwapSeries::CountSwapOut(const SwapRecord& swap, bool has_duration) {
  const Link& link = links_[1].at(static_cast<std::size_t>(swap.path));
  link.CountBytes(swap);
  if (has_duration) link.CountTime(swap);
}

GpuSeries::GpuSeries(Registry& registry)
    : host_name_(HostName()),
      pool_bytes_(AddGauge(registry, "torpor_gpu_pool_bytes", "Device memory for images.")),
      used_bytes_(
          AddGauge(registry, "torpor_gpu_used_bytes", "Device memory that allocations take.")),
      cached_bytes_(AddGauge(registry, "torpor_gpu_cached_bytes",
                             "The rest of the device memory that is kept for images.")),
      free_bytes_(
          AddGauge(registry, "torpor_gpu_free_bytes", "Device memory that is kept for nobody.")),
      replica_bytes_(AddGauge(registry, "torpor_gpu_replica_bytes",
                              "Device memory that copies of other GPUs' images take.")),
      link_rate_(AddGauge(registry, "torpor_gpu_link_bytes_per_second",
                          "Rate from the host's pinned memory, as measured; 0: it was not.")),
      fragmented_bytes_(AddGauge(registry, "torpor_gpu_fragmented_bytes",
                                 "Of the free device memory what is not in one piece.")),
      is_ready_(AddGauge(registry, "torpor_gpu_ready", "1 while the GPU's executor serves.")),
      has_spare_(AddGauge(registry, "torpor_gpu_spare_ready",
                          "1 while a spare executor is ready to take over.")),
      busy_seconds_(
          AddCounter(registry, "torpor_gpu_busy_seconds_total", "Time that a GPU was leased.")) {}

void GpuSeries::Render(const GpuSnapshot& gpu) {
  const Labels labels = {
      {"gpu", std::to_string(gpu.gpu)}, {"UUID", gpu.uuid}, {"Hostname", host_name_}};
  pool_bytes_.Add(labels).Set(static_cast<double>(gpu.pool_bytes));
  used_bytes_.Add(labels).Set(static_cast<double>(gpu.memory.used));
  cached_bytes_.Add(labels).Set(static_cast<double>(gpu.memory.cached));
  free_bytes_.Add(labels).Set(static_cast<double>(gpu.free_bytes));
  replica_bytes_.Add(labels).Set(static_cast<double>(gpu.memory.replicas));
  link_rate_.Add(labels).Set(gpu.link_bytes_per_second);
  fragmented_bytes_.Add(labels).Set(static_cast<double>(gpu.fragmented_bytes));
  is_ready_.Add(labels).Set(gpu.state == "ready" ? 1 : 0);
  has_spare_.Add(labels).Set(gpu.spare_pid != 0 ? 1 : 0);
  RaiseTo(busy_seconds_.Add(labels), gpu.busy_seconds);
}

InstanceSeries::InstanceSeries(Registry& registry)
    : is_serving_(AddGauge(registry, "torpor_instance_serving",
                           "1 while the instance has a session and its server answers.")),
      sessions_(AddGauge(registry, "torpor_instance_sessions", "Open sessions of an instance.")),
      image_bytes_(
          AddGauge(registry, "torpor_instance_image_bytes", "Size of an instance's image.")),
      resident_(AddGauge(registry, "torpor_instance_resident",
                         "1 while the instance's image is on the GPU.")),
      requests_(AddCounter(registry, "torpor_instance_requests_total",
                           "Requests granted to an instance.")),
      gpu_seconds_(AddCounter(registry, "torpor_instance_gpu_seconds_total",
                              "GPU time under lease of an instance.")) {}

void InstanceSeries::Render(const NodeSnapshot& node) {
  std::set<Name> rendered;
  for (const GpuSnapshot& gpu : node.gpus) gpus_.insert(gpu.gpu);
  for (const FunctionSnapshot& function : node.functions) {
    for (const InstanceSnapshot& instance : function.instances) {
      Render(function.name, instance, node.gpus);
      rendered.emplace(function.name, instance.name);
    }
  }
  for (const Name& name : std::exchange(rendered_, rendered)) {
    if (!rendered.contains(name)) Drop(name);
  }
}

void InstanceSeries::Drop(const Name& name) {
  Labels labels = {{"function", name.first}, {"instance", name.second}};
  for (auto* const family : {&is_serving_, &sessions_, &image_bytes_}) {
    family->Remove(&family->Add(labels));
  }
  for (auto* const family : {&requests_, &gpu_seconds_}) family->Remove(&family->Add(labels));
  for (const int gpu : gpus_) {
    labels["gpu"] = std::to_string(gpu);
    resident_.Remove(&resident_.Add(labels));
  }
}

void InstanceSeries::Render(const std::string& function, const InstanceSnapshot& instance,
                            const std::vector<GpuSnapshot>& gpus) {
  Labels labels = {{"function", function}, {"instance", instance.name}};
  const bool is_serving = instance.health == scheduler::WordOf(scheduler::Health::kServing);
  is_serving_.Add(labels).Set(is_serving ? 1 : 0);
  sessions_.Add(labels).Set(static_cast<double>(instance.sessions));
  image_bytes_.Add(labels).Set(static_cast<double>(instance.image_bytes));
  RaiseTo(requests_.Add(labels), static_cast<double>(instance.requests));
  RaiseTo(gpu_seconds_.Add(labels), instance.gpu_seconds);
  for (const GpuSnapshot& gpu : gpus) {
    labels["gpu"] = std::to_string(gpu.gpu);
    resident_.Add(labels).Set(std::ranges::count(instance.resident_gpus, gpu.gpu) != 0 ? 1 : 0);
  }
}

ProcessSeries::ProcessSeries(Registry& registry)
    : restarts_(AddCounter(registry, "torpor_function_restarts_total",
                           "Starts of a function's processes by torpord after the first.")) {}

void ProcessSeries::Render(const NodeSnapshot& node) {
  std::set<std::string> rendered;
  for (const FunctionSnapshot& function : node.functions) {
    if (function.process.state.empty()) continue;
    RaiseTo(restarts_.Add({{"function", function.name}}),
            static_cast<double>(function.process.restarts));
    rendered.insert(function.name);
  }
  for (const std::string& name : std::exchange(rendered_, rendered)) {
    if (!rendered.contains(name)) restarts_.Remove(&restarts_.Add({{"function", name}}));
  }
}

StrikeSeries::StrikeSeries(Registry& registry)
    : strikes_(AddCounter(registry, "torpor_function_strikes_total",
                          "Executors that a function has ended by faults of its own.")),
      refused_(AddGauge(registry, "torpor_function_refused",
                        "1 while a function gets no GPU for its strikes.")) {}

void StrikeSeries::CountStrike(const std::string& function, StrikeCause cause) {
  strikes_.Add({{"function", function}, {"cause", NameOf(kStrikeCauses, cause)}}).Increment();
}

void StrikeSeries::Render(const NodeSnapshot& node) {
  std::set<std::string> rendered;
  for (const FunctionSnapshot& function : node.functions) {
    if (function.strikes == 0 && !rendered_.contains(function.name)) continue;
    refused_.Add({{"function", function.name}}).Set(function.refused_for > Duration{} ? 1 : 0);
    rendered.insert(function.name);
  }
  for (const std::string& name : std::exchange(rendered_, rendered)) {
    if (!rendered.contains(name)) Drop(name);
  }
}

void StrikeSeries::Drop(const std::string& function) {
  refused_.Remove(&refused_.Add({{"function", function}}));
  for (const char* const cause : kStrikeCauses) {
    strikes_.Remove(&strikes_.Add({{"function", function}, {"cause", cause}}));
  }
}

void FunctionCounts::SetObjective(Duration new_deadline, double new_percentile) {
  deadline_seconds->Set(ToSeconds(new_deadline));
  percentile->Set(new_percentile);
}

FunctionSeries::FunctionSeries(Registry& registry)
    : deadline_(
          AddGauge(registry, "torpor_deadline_seconds", "The objective of a function's requests.")),
      percentile_(AddGauge(registry, "torpor_objective_percentile",
                           "Share of requests that are to meet the deadline.")),
      scheduled_(AddCounter(registry, "torpor_scheduled_requests_total",
                            "Requests that are over, as the scheduler counts them.")),
      gpu_seconds_(AddCounter(registry, "torpor_gpu_seconds_total", "GPU time under lease.")),
      host_byte_seconds_(AddCounter(registry, "torpor_host_byte_seconds_total",
                                    "Host memory for images and pinned memory, over time.")),
      queued_(AddGauge(registry, "torpor_function_queued_requests",
                       "Its requests that wait for a GPU.")),
      required_requests_(AddGauge(registry, "torpor_function_required_requests",
                                  "Requests in time that it still needs to comply.")),
      first_group_(AddGauge(registry, "torpor_function_first_group",
                            "1 while its requests are in the group that goes first.")),
      compliant_(
          AddGauge(registry, "torpor_function_compliant", "1 while it meets its objective.")),
      image_bytes_(
          AddGauge(registry, "torpor_function_image_bytes", "Size of a function's image.")),
      sessions_(AddGauge(registry, "torpor_function_sessions", "Open sessions of a function.")),
      resident_(AddGauge(registry, "torpor_function_resident", "1 while the image is on the GPU.")),
      gpu_bytes_(AddGauge(registry, "torpor_function_gpu_bytes",
                          "Device memory of a GPU that is kept for a function.")) {}

FunctionCounts* FunctionSeries::Find(const std::string& function) {
  const auto found = counts_.find(function);
  return found == counts_.end() ? nullptr : &found->second;
}

void FunctionSeries::SetFunctions(const std::map<std::string, FunctionConfig>& functions) {
  MutexLock lock(&mutex_);
  for (auto known = counts_.begin(); known != counts_.end();) {
    if (functions.contains(known->first)) {
      ++known;
      continue;
    }
    Drop(known->first, known->second);
    known = counts_.erase(known);
  }
  for (const auto& [name, function] : functions) {
    const auto [known, is_new] = counts_.try_emplace(name);
    FunctionCounts& counts = known->second;
    if (is_new) Add(function, counts);
    counts.SetObjective(function.deadline, function.percentile);
    if (!is_new && counts.tenant != function.tenant) {
      DropPaidBy(counts);
      AddPaidBy(function, counts);
    }
  }
}

void FunctionSeries::Add(const FunctionConfig& function, FunctionCounts& counts) {
  const std::string& name = function.name;
  const Labels label = {{"function", name}};
  counts.deadline_seconds = &deadline_.Add(label);
  counts.percentile = &percentile_.Add(label);
  counts.in_time = &scheduled_.Add({{"function", name}, {"deadline", "met"}});
  counts.late = &scheduled_.Add({{"function", name}, {"deadline", "missed"}});
  AddPaidBy(function, counts);
}

void FunctionSeries::AddPaidBy(const FunctionConfig& function, FunctionCounts& counts) {
  counts.tenant = function.tenant;
  const Labels paid_by = {{"tenant", function.tenant}, {"function", function.name}};
  counts.gpu_seconds = &gpu_seconds_.Add(paid_by);
  counts.host_byte_seconds = &host_byte_seconds_.Add(paid_by);
}

void FunctionSeries::DropPaidBy(FunctionCounts& counts) {
  gpu_seconds_.Remove(counts.gpu_seconds);
  host_byte_seconds_.Remove(counts.host_byte_seconds);
}

void FunctionSeries::Drop(const std::string& function, FunctionCounts& counts) {
  deadline_.Remove(counts.deadline_seconds);
  percentile_.Remove(counts.percentile);
  scheduled_.Remove(counts.in_time);
  scheduled_.Remove(counts.late);
  DropPaidBy(counts);
  Labels label = {{"function", function}};
  for (Family<Gauge>* const family :
       {&queued_, &required_requests_, &first_group_, &compliant_, &image_bytes_, &sessions_}) {
    family->Remove(&family->Add(label));
  }
  for (const int gpu : gpus_) {
    label["gpu"] = std::to_string(gpu);
    for (Family<Gauge>* const family : {&resident_, &gpu_bytes_}) {
      family->Remove(&family->Add(label));
    }
  }
}

void FunctionSeries::CountLease(const std::string& function, Duration held) {
  ReaderMutexLock lock(&mutex_);
  FunctionCounts* const counts = Find(function);
  if (counts != nullptr) counts->gpu_seconds->Increment(std::max(0.0, ToSeconds(held)));
}

void FunctionSeries::Render(const FunctionSnapshot& function,
                            const std::vector<GpuSnapshot>& gpus) {
  MutexLock lock(&mutex_);
  const FunctionCounts* const counts = Find(function.name);
  if (counts == nullptr) return;
  RaiseTo(*counts->host_byte_seconds, function.host_byte_seconds);
  const Labels label = {{"function", function.name}};
  image_bytes_.Add(label).Set(static_cast<double>(function.image_bytes));
  sessions_.Add(label).Set(static_cast<double>(function.sessions));
  RenderObjective(function.objective, *counts, label);
  for (const GpuSnapshot& gpu : gpus) {
    gpus_.insert(gpu.gpu);
    RenderCopy(function, gpu.gpu);
  }
}

void FunctionSeries::RenderObjective(const ObjectiveSnapshot& objective,
                                     const FunctionCounts& counts, const Labels& label) {
  RaiseTo(*counts.in_time, static_cast<double>(objective.in_time));
  RaiseTo(*counts.late, static_cast<double>(objective.finished - objective.in_time));
  queued_.Add(label).Set(static_cast<double>(objective.waiting));
  compliant_.Add(label).Set(objective.is_compliant() ? 1 : 0);
  if (!objective.required_count) return;
  required_requests_.Add(label).Set(*objective.required_count);
  first_group_.Add(label).Set(objective.is_first_group ? 1 : 0);
}

void FunctionSeries::RenderCopy(const FunctionSnapshot& function, int gpu) {
  const Labels labels = {{"function", function.name}, {"gpu", std::to_string(gpu)}};
  const bool is_resident = std::ranges::count(function.resident_gpus, gpu) != 0;
  resident_.Add(labels).Set(is_resident ? 1 : 0);
  const auto memory = function.memory.find(gpu);
  gpu_bytes_.Add(labels).Set(
      memory == function.memory.end()
          ? 0
          : static_cast<double>(memory->second.used + memory->second.cached));
}

}  // namespace torpor::server
