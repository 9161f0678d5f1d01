#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/units.h"

namespace torpor::e2e {

// What a process of this machine uses; all zero for one that is gone.
struct ProcessFigures {
  Bytes anonymous = 0;                     // resident memory that is its own
  Bytes shared = 0;                        // resident memory of memory files
  std::map<std::string, int> descriptors;  // how many of each kind
  Bytes proportional = 0;                  // PSS: its own, and its share of what others map, too
  std::uint64_t threads = 0;

  int descriptor_count() const;
  // "12 socket, 3 anon_inode:[eventpoll]"
  std::string DescriptorText() const;
};

ProcessFigures FiguresOf(pid_t pid);

// Memory of the process's open memory files (memfd), by device and inode: a file counts once,
// however many processes have it open.
using MemoryFiles = std::map<std::pair<std::uint64_t, std::uint64_t>, Bytes>;
void AddMemoryFilesOf(pid_t pid, MemoryFiles& files);

}  // namespace torpor::e2e
