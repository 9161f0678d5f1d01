#pragma once

#include <optional>
#include <string>

#include "base/ids.h"

namespace torpor::server {

// An administrator's request about a function's memory. A plain record.
struct AdminRequest {
  enum class Kind {
    kLoad,        // to a GPU, before a request comes
    kEvict,       // off all GPUs
    kPin,         // evicted only if evicting all other functions leaves too little room
    kUnpin,       // evicted in turn again
    kCheckpoint,  // write changes back to the host image
  };

  Kind kind = Kind::kLoad;
  std::string function;
  std::optional<GpuIndex> gpu = std::nullopt;  // kLoad: the GPU to use; unset: any
};

}  // namespace torpor::server
