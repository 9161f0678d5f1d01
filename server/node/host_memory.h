#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace torpor::server {

// Returns the memory that this process may take: the machine's, or the least limit of the process's
// cgroups (version 2 or 1) and of their parents. nullopt if the system does not tell. `root`:
// folder of /proc and /sys, empty but in tests.
std::optional<Bytes> AvailableHostMemory(const std::string& root = "");

// The parts of that, of the system's text.

// Files that may hold a limit, of /proc/self/cgroup: of the process's cgroups and of all parents.
std::vector<std::string> CgroupLimitFiles(std::string_view cgroups);
// Of memory.max or memory.limit_in_bytes; nullopt: none.
std::optional<Bytes> ParseCgroupLimit(std::string_view text);
// MemTotal of /proc/meminfo.
std::optional<Bytes> ParseTotalMemory(std::string_view meminfo);

}  // namespace torpor::server
