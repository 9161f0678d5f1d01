#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "server/config/config.h"
#include "server/config/config_request.h"
#include "server/controller/admin_request.h"
#include "server/controller/node_snapshot.h"
#include "server/controller/request_trace.h"

namespace torpor::server {

// The service Admin (proto/torpor/v1/admin.proto) and grpc.health.v1 on the admin socket.
class AdminServer {
 public:
  struct Sources {
    std::function<NodeSnapshot()> snapshot;                       // called on the server's threads
    std::function<absl::Status(const AdminRequest&)> administer;  // as Node::Administer; the same
    // As LiveConfig::Change; the same.
    std::function<absl::StatusOr<std::vector<std::string>>(const ConfigRequest&)> configure;
    std::function<absl::StatusOr<RequestTrace>(const std::string&)> explain;  // as Node::Explain
    std::string http_address;  // as bound; empty if not served
    std::string metrics_address;
  };

  // Serves on config.admin_socket, for owner and group of the socket. Unavailable if the socket
  // cannot be bound.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(const Config& config, Sources sources);

  virtual ~AdminServer() = default;  // stops; calls in progress are cancelled
};

}  // namespace torpor::server
