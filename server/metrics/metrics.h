#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "server/config/config.h"
#include "server/controller/model/swap_source.h"
#include "server/controller/model/telemetry.h"
#include "server/controller/node_snapshot.h"

namespace torpor::server {

// The end of a request; the label `outcome` of torpor_requests_total.
enum class RequestOutcome {
  kOk,             // the upstream answered, whatever its status below 500
  kUpstreamError,  // the upstream answered with 5xx
  kRejected,       // refused: malformed, too large, draining, no instance
  kTimeout,        // too long in the queue or at the upstream
  kLost,           // the lease or the upstream broke in mid-request
  kCancelled,      // the client went away
};

// A finished request, for the metrics.
struct RequestRecord {
  std::string function;
  RequestOutcome outcome = RequestOutcome::kOk;
  Duration duration{};      // from the request's header to the whole answer
  bool is_granted = false;  // else the next fields are unset
  SwapSource source = SwapSource::kResident;
  Duration queue{};
  Duration swap{};
  Duration run{};  // from the grant to the end of the upstream's answer
};

// All series that torpord exports (docs/metrics.md). Only configured functions become labels, so
// that strangers' paths cannot grow the set. Thread-safe.
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

  // Makes these the configured functions.
  void SetFunctions(const std::map<std::string, FunctionConfig>& functions);
  void OnRequest(const RequestRecord& request);
  // Counts a request for an unknown function.
  void OnUnknownFunction();
  void OnConnections(int open);

  // Returns the text of /metrics, with gauges from `node`.
  std::string Render(const NodeSnapshot& node);

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace torpor::server
