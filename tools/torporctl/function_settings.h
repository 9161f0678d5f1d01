#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/config/settings.h"

namespace torpor::torporctl {

// Changes settings of `function`, until the daemon ends. Returns the daemon's error if any of the
// settings is wrong, and then changes nothing.
absl::Status SetFunction(const std::string& admin_socket, const std::string& function,
                         const std::vector<server::SettingText>& settings);

}  // namespace torpor::torporctl
