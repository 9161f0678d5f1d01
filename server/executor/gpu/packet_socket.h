#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace torpor::executor {

// A connection to a Unix socket of type SOCK_SEQPACKET, on which neither side waits longer than a
// few seconds for the other.
absl::StatusOr<UniqueFd> DialPacketSocket(const std::string& path);

// At most so many descriptors come with an answer.
inline constexpr std::size_t kMaxDescriptors = 128;

// Sends `question` and receives an answer of exactly the size of `answer`, with the descriptors
// that come with it. Errors name `who` is asked.
absl::StatusOr<std::vector<UniqueFd>> Ask(const UniqueFd& connection, absl::string_view who,
                                          std::span<const std::byte> question,
                                          std::span<std::byte> answer);

}  // namespace torpor::executor
