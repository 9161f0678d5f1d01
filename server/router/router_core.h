#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "server/config/config.h"
#include "server/router/body_spool.h"
#include "server/router/hangup_watcher.h"
#include "server/router/inquiry_desk.h"
#include "server/router/lease_desk.h"
#include "server/router/router.h"
#include "server/router/upstream_pools.h"

namespace torpor::server {

class ClientConnection;

// State that all connections share. Used on the router's thread only.
struct RouterCore {
  RouterCore(const Router::Options& router_options, Router::Parts router_parts);

  void SetFunctions(const std::map<std::string, FunctionConfig>& configured);
  // Returns nullptr if there is no such function.
  std::shared_ptr<const FunctionConfig> FindFunction(const std::string& name) const;

  // Replaces all settings but the addresses.
  void SetOptions(const Router::Options& options);

  // Counts a request in progress. The matching EndRequest may complete a drain.
  void BeginRequest() { ++active_requests; }
  void EndRequest();

  RouterConfig config;
  Duration drain_timeout;
  const Router::Parts parts;
  boost::asio::io_context io{1};
  LeaseDesk desk;
  InquiryDesk inquiries;
  HangupWatcher hangups;
  UpstreamPools upstreams;
  BodySpool spool;
  // By name. A request keeps its function's as it was when the request came.
  std::map<std::string, std::shared_ptr<const FunctionConfig>> functions;
  std::set<ClientConnection*> connections;
  int active_requests = 0;
  bool is_draining = false;
  std::function<void()> on_drained;
};

}  // namespace torpor::server
