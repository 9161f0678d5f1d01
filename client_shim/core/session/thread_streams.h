#pragma once

#include <cstdint>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// The handle of the calling thread's default stream on `core`'s device. Creates the stream at the
// thread's first use; the thread's end destroys the stream, so `core` must outlive the thread.
std::uint64_t ThreadStreamOf(ClientCore& core);

}  // namespace torpor::shim
