#pragma once

#include <string>

namespace torpor::executor {

// The kernel's file about huge pages for shared memory.
inline constexpr const char* kSharedHugePages = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

// Whether the system gives huge pages to shared memory for which a process asks for some, by a file
// such as kSharedHugePages.
bool GivesSharedHugePages(const std::string& file = kSharedHugePages);

}  // namespace torpor::executor
