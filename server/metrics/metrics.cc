#include "server/metrics/metrics.h"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "base/mutex.h"
#include "server/metrics/series.h"
#include "server/version/version.h"

namespace torpor::server {

struct Metrics::Series {
  explicit Series(const Config& config)
      : node(registry),
        swaps(registry),
        spills(registry),
        gpus(registry),
        functions(registry),
        instances(registry),
        processes(registry),
        strikes(registry) {
    functions.SetFunctions(config.functions);
    prometheus::BuildGauge()
        .Name("torpor_build_info")
        .Help("1; the release is in the label.")
        .Register(registry)
        .Add({{"version", Version()}})
        .Set(1);
  }

  prometheus::Registry registry;
  NodeSeries node;
  SwapSeries swaps;
  SpillSeries spills;
  GpuSeries gpus;
  FunctionSeries functions;
  InstanceSeries instances;
  ProcessSeries processes;
  StrikeSeries strikes;
  Mutex render_mutex;  // held by a scrape
};

Metrics::Metrics(const Config& config) : series_(std::make_unique<Series>(config)) {}
Metrics::~Metrics() = default;

void Metrics::OnSwapIn(const SwapRecord& swap) { series_->swaps.CountSwapIn(swap); }

void Metrics::OnSwapOut(const SwapRecord& swap, WriteBackReason reason) {
  // An idle write-back is a part of an image, and no request waits.
  series_->swaps.CountSwapOut(swap, reason != WriteBackReason::kIdle);
  series_->node.CountWriteBack(reason, swap.bytes.total());
}

void Metrics::OnEviction(const std::string&, GpuIndex, EvictionReason reason) {
  series_->node.CountEviction(reason);
}

void Metrics::OnLeaseEnded(const std::string& function, GpuIndex, Duration held, bool) {
  series_->functions.CountLease(function, held);
}

void Metrics::OnExecutorLost(GpuIndex gpu) { series_->node.CountLostExecutor(gpu); }
void Metrics::OnWrongToken() { series_->node.CountWrongToken(); }

void Metrics::OnSessionOutlived(OutlivedFate fate) { series_->node.CountOutlivedSession(fate); }

void Metrics::OnStrike(const std::string& function, StrikeCause cause) {
  series_->strikes.CountStrike(function, cause);
}

void Metrics::SetFunctions(const std::map<std::string, FunctionConfig>& functions) {
  series_->functions.SetFunctions(functions);
}

std::string Metrics::Render(const NodeSnapshot& node) {
  MutexLock lock(&series_->render_mutex);
  series_->node.Render(node);
  series_->spills.Render(node.spills);
  for (const GpuSnapshot& gpu : node.gpus) series_->gpus.Render(gpu);
  for (const FunctionSnapshot& function : node.functions) {
    series_->functions.Render(function, node.gpus);
  }
  series_->instances.Render(node);
  series_->processes.Render(node);
  series_->strikes.Render(node);
  return prometheus::TextSerializer().Serialize(series_->registry.Collect());
}

}  // namespace torpor::server
