#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/torpor/v1/router.pb.h"
#include "server/broker/node_inquiry.h"
#include "server/broker/request_broker.h"
#include "server/config/config.h"

namespace torpor::server {

// The service Routing (proto/torpor/v1/router.proto), for this node's router. A router that goes
// has its requests released. Thread-safe.
class RoutingServer {
 public:
  // Functions are called on the server's threads and must not call back into the server.
  struct Parts {
    RequestBroker* broker = nullptr;  // must outlive the server and its own callbacks
    std::string settings;             // for the router, as it got them at its start
    std::map<std::string, FunctionConfig> functions;
    // Returns why a router is not wanted; empty if it is. Then on_attached follows.
    std::function<std::string(const v1::RouterMessage::Hello&)> find_refusal;
    std::function<void(const v1::RouterMessage::Hello&)> on_attached;
    std::function<void(std::int64_t pid)> on_alive;  // the router's loop turns
    // Answers to routers' inquiries: may take a while.
    std::function<Readiness(const std::string& function)> readiness;  // empty: of the node
    std::function<std::string()> metrics;
  };

  // Serves on `path`, for the socket's owner. Errors as UnixGrpcServer::Start's.
  static absl::StatusOr<std::unique_ptr<RoutingServer>> Start(const std::string& path, Parts parts);

  // Ends the stream: a living router keeps its requests.
  virtual ~RoutingServer() = default;

  // Tells the router which functions there are from now on.
  virtual void SetFunctions(std::map<std::string, FunctionConfig> functions) = 0;

  // From now on new requests stay with the router, for the next torpord.
  virtual void Pause() = 0;
};

}  // namespace torpor::server
