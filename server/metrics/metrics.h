#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "server/config/config.h"
#include "server/controller/model/telemetry.h"
#include "server/controller/node_snapshot.h"

namespace torpor::server {

// The series that torpord exports (docs/metrics.md); the router counts requests itself
// (server/router/request_metrics.h). Only configured functions become labels. Thread-safe.
class Metrics final : public Telemetry {
 public:
  explicit Metrics(const Config& config);
  ~Metrics() override;

  void OnSwapIn(const SwapRecord& swap) override;
  void OnSwapOut(const SwapRecord& swap, WriteBackReason reason) override;
  void OnEviction(const std::string& function, GpuIndex gpu, EvictionReason reason) override;
  void OnLeaseEnded(const std::string& function, GpuIndex gpu, Duration held,
                    bool is_explicit) override;
  void OnExecutorLost(GpuIndex gpu) override;
  void OnWrongToken() override;
  void OnSessionOutlived(OutlivedFate fate) override;
  void OnStrike(const std::string& function, StrikeCause cause) override;

  // Makes these the configured functions.
  void SetFunctions(const std::map<std::string, FunctionConfig>& functions);

  // Returns torpord's part of the text of /metrics, with gauges from `node`.
  std::string Render(const NodeSnapshot& node);

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace torpor::server
