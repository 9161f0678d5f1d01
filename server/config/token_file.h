#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace torpor::server {

// 22 characters of base64 are 128 bits.
inline constexpr std::size_t kLeastTokenLength = 22;

// Returns the first word of the file, the secret of `owner`. Errors, which do not name the file,
// say what is wrong: NotFound if it cannot be read, InvalidArgument if the word is missing or
// shorter than kLeastTokenLength.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path, const std::string& owner);

}  // namespace torpor::server
