#pragma once

#include <string>

namespace torpor::server {

// The file that `emulator_topology` means: the one at `path`, or where there is none the preset of
// that name, `../lib/torpor/topologies/NAME.yaml` from `program_dir`. `path` itself if there is
// neither.
std::string FindTopology(const std::string& path, const std::string& program_dir);

}  // namespace torpor::server
