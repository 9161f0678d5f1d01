#pragma once

#include <string>

namespace torpor::server {

// Returns the file meant by `emulator_topology`: `path` if a file exists there, else the preset of
// that name, `../lib/torpor/topologies/NAME.yaml` from `program_dir`, else `path` unchanged.
std::string FindTopology(const std::string& path, const std::string& program_dir);

}  // namespace torpor::server
