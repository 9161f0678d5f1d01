#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "proto/wire/descriptor_socket.h"

namespace torpor::executor {

// Fetches one memory file of a session from torpord. Blocks, for at most a few seconds.
// Unavailable if torpord does not answer; else torpord's own error, PermissionDenied for example.
absl::StatusOr<UniqueFd> FetchDescriptor(const std::string& socket_path, SessionId session,
                                         const std::array<std::uint8_t, 16>& key,
                                         wire::SharedMemory what);

}  // namespace torpor::executor
