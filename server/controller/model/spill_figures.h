#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/units.h"

namespace torpor::server {

// Images that have left host memory for a disk, and have come back. A plain record.
struct SpillFigures {
  struct Moves {
    std::uint64_t images = 0;
    Bytes bytes = 0;
    Duration duration{};
    std::uint64_t failures = 0;
  };
  Bytes limit = 0;  // 0: none are spilled
  Bytes bytes = 0;  // on the disk
  std::uint64_t images = 0;
  Moves out;
  Moves back;
};

}  // namespace torpor::server
