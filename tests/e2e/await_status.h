#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "proto/torpor/v1/admin.pb.h"
#include "tests/e2e/await.h"

namespace torpor::e2e {

// Await, of the status that the daemon at this socket gives. Where it gives none, its error.
absl::Status AwaitStatus(const std::string& admin_socket, const std::string& what,
                         const std::function<bool(const v1::NodeStatus&)>& is_so,
                         Duration patience = kPatience);

// Whether no GPU is leased.
bool IsIdle(const v1::NodeStatus& status);

// Evicts the function, once no request of it runs any more: an answer may come before its lease has
// ended, and until then the eviction is refused.
absl::Status EvictWhenIdle(const std::string& admin_socket, const std::string& function);

}  // namespace torpor::e2e
