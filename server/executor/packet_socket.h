#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace torpor::executor {

// A connection to a Unix socket of type SOCK_SEQPACKET, on which neither side waits longer than a
// few seconds for the other.
absl::StatusOr<UniqueFd> DialPacketSocket(const std::string& path);

}  // namespace torpor::executor
