#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace torpor {

// Replaces or creates the file `path` with `contents`. Blocks. Errors name the path and the reason;
// after an error the file may hold a part of the contents.
absl::Status WriteFile(const std::string& path, std::string_view contents);

}  // namespace torpor
