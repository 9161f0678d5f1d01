#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/config_request.h"

namespace torpor::torporctl {

// Sends a change of functions or tenants to the daemon. Returns what it has changed, a line each.
// On the daemon's error nothing is changed.
absl::StatusOr<std::vector<std::string>> Configure(const std::string& admin_socket,
                                                   const server::ConfigRequest& request);

}  // namespace torpor::torporctl
