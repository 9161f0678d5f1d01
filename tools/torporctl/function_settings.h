#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/config/settings.h"

namespace torpor::torporctl {

// Changes settings of a function until the daemon on that socket ends; what is wrong, else.
absl::Status SetFunction(const std::string& admin_socket, const std::string& function,
                         const std::vector<server::SettingText>& settings);

}  // namespace torpor::torporctl
