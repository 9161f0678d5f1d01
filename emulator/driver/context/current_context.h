#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "emulator/driver/context/context.h"

namespace torpor::emulator {

struct CurrentContext {
  CUcontext handle = nullptr;
  std::shared_ptr<Context> context;
};

// Returns the calling thread's stack of contexts; its back is the current one.
std::vector<CurrentContext>& ContextStack();

}  // namespace torpor::emulator
