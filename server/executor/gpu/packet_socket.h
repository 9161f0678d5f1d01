#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace torpor::executor {

// Connects to a Unix socket of type SOCK_SEQPACKET. Sends and receives on the connection fail after
// a few seconds without progress.
absl::StatusOr<UniqueFd> DialPacketSocket(const std::string& path);

// Most descriptors in one answer.
inline constexpr std::size_t kMaxDescriptors = 128;

// Sends `question` and receives an answer of exactly the size of `answer` with the attached
// descriptors. Blocks. Errors name the peer, `who`.
absl::StatusOr<std::vector<UniqueFd>> Ask(const UniqueFd& connection, absl::string_view who,
                                          std::span<const std::byte> question,
                                          std::span<std::byte> answer);

}  // namespace torpor::executor
