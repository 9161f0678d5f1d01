#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "base/units.h"

namespace torpor::soak {

// What a process of this machine uses; all zero for one that is gone.
struct ProcessFigures {
  Bytes anonymous = 0;                     // resident memory that is its own
  Bytes shared = 0;                        // resident memory of memory files
  std::map<std::string, int> descriptors;  // how many of each kind
  std::uint64_t threads = 0;

  int descriptor_count() const;
  // "12 socket, 3 anon_inode:[eventpoll]"
  std::string DescriptorText() const;
};

ProcessFigures FiguresOf(pid_t pid);

}  // namespace torpor::soak
