#pragma once

#include <cuda.h>

#include <memory>

#include "emulator/driver/context/context.h"

namespace torpor::emulator {

// A stream and the context that it belongs to.
struct StreamTarget {
  std::shared_ptr<Context> context;
  std::shared_ptr<Stream> stream;
};

// Looks `handle` up: a stream's, CU_STREAM_LEGACY or CU_STREAM_PER_THREAD (of the calling thread's
// current context), but not null. Fails if the stream or its context is gone.
CUresult FindStream(CUstream handle, StreamTarget& target);

}  // namespace torpor::emulator
