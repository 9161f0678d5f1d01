#pragma once

#include <cstdint>

namespace torpor::executor {

// A pool of chunks, numbered from 0, as one process describes its own to another: a chunk keeps its
// number and its memory until the process ends.
struct PoolDescription {
  std::uint64_t id = 0;  // random
  std::uint64_t chunk_bytes = 0;
  std::uint64_t chunks = 0;

  bool operator==(const PoolDescription&) const = default;
};

}  // namespace torpor::executor
