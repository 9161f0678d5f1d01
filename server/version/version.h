#pragma once

namespace torpor::server {

// Returns the release, as in `--version` and torpor_build_info.
const char* Version();

}  // namespace torpor::server
