#pragma once

#include <optional>
#include <string>

#include "base/ids.h"

namespace torpor::server {

// What an administrator asks for a function's memory.
struct Hint {
  enum class Kind {
    kLoad,        // to a GPU, before a request comes
    kEvict,       // off all GPUs
    kPin,         // evicted only where all others together leave too little room
    kUnpin,       // evicted as all others
    kCheckpoint,  // what the GPU has changed goes to the host image
  };

  Kind kind = Kind::kLoad;
  std::string function;
  std::optional<GpuIndex> gpu = std::nullopt;  // kLoad: that one; else any
};

}  // namespace torpor::server
