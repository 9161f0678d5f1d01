#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/config/config.h"
#include "server/controller/model/telemetry.h"
#include "server/controller/node_snapshot.h"

// The series of /metrics by subject (docs/metrics.md). Each class registers its series in the
// constructor; the registry must outlive it. Counting is thread-safe, Render is for one thread at a
// time: two at a time would count the same difference twice.
namespace torpor::server {

// Counts and gauges of the whole node.
class NodeSeries {
 public:
  explicit NodeSeries(prometheus::Registry& registry);

  void CountEviction(EvictionReason reason);
  void CountWriteBack(WriteBackReason reason, Bytes bytes);
  void CountLostExecutor(GpuIndex gpu);
  void CountWrongToken();
  void CountOutlivedSession(OutlivedFate fate);
  void Render(const NodeSnapshot& node);

 private:
  prometheus::Family<prometheus::Counter>& evictions_;
  prometheus::Family<prometheus::Counter>& write_back_bytes_;
  prometheus::Family<prometheus::Counter>& executors_lost_;
  prometheus::Counter& wrong_tokens_;
  prometheus::Family<prometheus::Counter>& sessions_outlived_;
  prometheus::Gauge& queued_;
  prometheus::Gauge& sessions_;
  prometheus::Gauge& host_image_bytes_;
  prometheus::Gauge& host_memory_bytes_;
  prometheus::Gauge& host_memory_used_bytes_;
  prometheus::Counter& host_memory_refusals_;
  prometheus::Gauge& shared_stored_bytes_;
  prometheus::Gauge& shared_used_bytes_;
  prometheus::Family<prometheus::Gauge>& address_mode_;
  prometheus::Gauge& address_fallback_;
  prometheus::Gauge& address_bytes_;
  prometheus::Gauge& free_address_bytes_;
  prometheus::Family<prometheus::Gauge>& alpha_;
};

// Bytes and times of swaps, by direction and path.
class SwapSeries {
 public:
  explicit SwapSeries(prometheus::Registry& registry);

  void CountSwapIn(const SwapRecord& swap);
  // `has_duration` is false for a part of an image without a waiting request.
  void CountSwapOut(const SwapRecord& swap, bool has_duration);

 private:
  static constexpr std::size_t kPathCount = 2;    // SwapRecord::path
  static constexpr std::size_t kOriginCount = 3;  // MovedBytes

  struct Link {
    void CountBytes(const SwapRecord& swap) const;
    void CountTime(const SwapRecord& swap) const;

    std::array<prometheus::Counter*, kOriginCount> bytes{};
    prometheus::Histogram* duration = nullptr;
  };

  std::array<std::array<Link, kPathCount>, 2> links_;  // in, out; by path
};

// Images on the disk, and their ways there and back.
class SpillSeries {
 public:
  explicit SpillSeries(prometheus::Registry& registry);

  void Render(const SpillFigures& spills);

 private:
  void Render(const char* direction, const SpillFigures::Moves& moves);

  prometheus::Gauge& limit_bytes_;
  prometheus::Gauge& bytes_;
  prometheus::Gauge& images_;
  // By direction.
  prometheus::Family<prometheus::Counter>& moves_;
  prometheus::Family<prometheus::Counter>& moved_bytes_;
  prometheus::Family<prometheus::Counter>& seconds_;
  prometheus::Family<prometheus::Counter>& failures_;
};

// Gauges of each GPU. Labels are those of NVIDIA's DCGM exporter, so that the two join.
class GpuSeries {
 public:
  explicit GpuSeries(prometheus::Registry& registry);

  void Render(const GpuSnapshot& gpu);

 private:
  const std::string host_name_;
  prometheus::Family<prometheus::Gauge>& pool_bytes_;
  prometheus::Family<prometheus::Gauge>& used_bytes_;
  prometheus::Family<prometheus::Gauge>& cached_bytes_;
  prometheus::Family<prometheus::Gauge>& free_bytes_;
  prometheus::Family<prometheus::Gauge>& replica_bytes_;
  prometheus::Family<prometheus::Gauge>& link_rate_;
  prometheus::Family<prometheus::Gauge>& fragmented_bytes_;
  prometheus::Family<prometheus::Gauge>& is_ready_;
  prometheus::Family<prometheus::Gauge>& has_spare_;
  prometheus::Family<prometheus::Counter>& busy_seconds_;
};

// Gauges and counts of each instance of the functions that have several.
class InstanceSeries {
 public:
  explicit InstanceSeries(prometheus::Registry& registry);

  // Series of instances that the node no longer has are dropped.
  void Render(const NodeSnapshot& node);

 private:
  using Name = std::pair<std::string, std::string>;  // function, instance

  void Render(const std::string& function, const InstanceSnapshot& instance,
              const std::vector<GpuSnapshot>& gpus);
  void Drop(const Name& name);

  std::set<Name> rendered_;
  std::set<int> gpus_;
  prometheus::Family<prometheus::Gauge>& is_serving_;
  prometheus::Family<prometheus::Gauge>& sessions_;
  prometheus::Family<prometheus::Gauge>& image_bytes_;
  prometheus::Family<prometheus::Gauge>& resident_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Counter>& gpu_seconds_;
};

// Restarts of the processes that torpord runs for functions.
class ProcessSeries {
 public:
  explicit ProcessSeries(prometheus::Registry& registry);
  void Render(const NodeSnapshot& node);

 private:
  prometheus::Family<prometheus::Counter>& restarts_;
  std::set<std::string> rendered_;  // functions with a series
};

// Strikes of functions, by their causes.
class StrikeSeries {
 public:
  explicit StrikeSeries(prometheus::Registry& registry);
  void CountStrike(const std::string& function, StrikeCause cause);
  void Render(const NodeSnapshot& node);

 private:
  void Drop(const std::string& function);

  prometheus::Family<prometheus::Counter>& strikes_;
  prometheus::Family<prometheus::Gauge>& refused_;
  std::set<std::string> rendered_;  // functions with series
};

// Counts of a function. A plain record; FunctionSeries' constructor fills all pointers.
struct FunctionCounts {
  void SetObjective(Duration new_deadline, double new_percentile);

  std::string tenant;
  prometheus::Gauge* deadline_seconds = nullptr;
  prometheus::Gauge* percentile = nullptr;
  prometheus::Counter* in_time = nullptr;
  prometheus::Counter* late = nullptr;
  prometheus::Counter* gpu_seconds = nullptr;
  prometheus::Counter* host_byte_seconds = nullptr;
};

// Counts and gauges of each configured function. Calls for other functions have no effect.
class FunctionSeries {
 public:
  explicit FunctionSeries(prometheus::Registry& registry);

  // Takes the configured functions and their objectives. Drops the series of all other functions.
  void SetFunctions(const std::map<std::string, FunctionConfig>& functions);

  void CountLease(const std::string& function, Duration held);
  // Renders the function and its presence on each of the node's GPUs.
  void Render(const FunctionSnapshot& function, const std::vector<GpuSnapshot>& gpus);

 private:
  FunctionCounts* Find(const std::string& function) ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Add(const FunctionConfig& function, FunctionCounts& counts);
  void AddPaidBy(const FunctionConfig& function, FunctionCounts& counts);
  void DropPaidBy(FunctionCounts& counts);
  void Drop(const std::string& function, FunctionCounts& counts);
  void RenderObjective(const ObjectiveSnapshot& objective, const FunctionCounts& counts,
                       const prometheus::Labels& label);
  void RenderCopy(const FunctionSnapshot& function, int gpu);

  Mutex mutex_;
  std::map<std::string, FunctionCounts> counts_ ABSL_GUARDED_BY(mutex_);
  std::set<int> gpus_ ABSL_GUARDED_BY(mutex_);  // with series
  prometheus::Family<prometheus::Gauge>& deadline_;
  prometheus::Family<prometheus::Gauge>& percentile_;
  prometheus::Family<prometheus::Counter>& scheduled_;
  prometheus::Family<prometheus::Counter>& gpu_seconds_;
  prometheus::Family<prometheus::Counter>& host_byte_seconds_;
  prometheus::Family<prometheus::Gauge>& queued_;
  prometheus::Family<prometheus::Gauge>& required_requests_;
  prometheus::Family<prometheus::Gauge>& first_group_;
  prometheus::Family<prometheus::Gauge>& compliant_;
  prometheus::Family<prometheus::Gauge>& image_bytes_;
  prometheus::Family<prometheus::Gauge>& sessions_;
  prometheus::Family<prometheus::Gauge>& resident_;
  prometheus::Family<prometheus::Gauge>& gpu_bytes_;
};

}  // namespace torpor::server
