#pragma once

#include <memory>
#include <string>

#include "server/broker/request_record.h"
#include "server/config/config.h"
#include "server/router/body_bytes.h"

namespace torpor::server {

// The series that the router counts itself (docs/metrics.md): so they outlive torpord. Only known
// functions become labels, so that strangers' paths cannot grow the set. Thread-safe.
class RequestMetrics {
 public:
  RequestMetrics();
  ~RequestMetrics();

  // Counts requests of these functions, from now on by these deadlines. Series of others are
  // dropped.
  void SetFunctions(const std::map<std::string, FunctionConfig>& functions);

  void OnRequest(const RequestRecord& request);
  // Counts a request for an unknown function.
  void OnUnknownFunction();
  void OnConnections(int open);
  void OnAttached(bool is_attached);
  // What bodies of requests take, and may take.
  void OnBodies(const BodyBytes& used);
  void OnBodyLimits(const BodyBytes& limits);

  // Returns the router's part of the text of /metrics.
  std::string Render();

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace torpor::server
