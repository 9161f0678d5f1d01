#include "server/daemon/topology_preset.h"

#include <filesystem>
#include <system_error>

namespace torpor::server {

std::string FindTopology(const std::string& path, const std::string& program_dir) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (path.empty() || fs::exists(path, error)) return path;
  const fs::path preset = fs::path(program_dir) / "../lib/torpor/topologies" /
                          fs::path(path).filename().concat(".yaml");
  return fs::exists(preset, error) ? preset.lexically_normal().string() : path;
}

}  // namespace torpor::server
