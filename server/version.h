#pragma once

namespace torpor::server {

// The release, as `--version` and torpor_build_info give it.
const char* Version();

}  // namespace torpor::server
