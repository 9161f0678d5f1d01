#pragma once

#include "client_shim/core/call_tracer.h"

namespace torpor::shim {

// Returns body()'s result, or `kNoMemory` if an allocation throws. No exception may leave a C
// entry, and the libraries beside the runtime throw for failed allocations only. `entry` names the
// call for a trace.
template <auto kNoMemory, typename Body>
decltype(kNoMemory) WithoutExceptions(Body&& body,
                                      const char* entry = __builtin_FUNCTION()) noexcept {
  const TracedCall traced(entry);
  try {
    return body();
  } catch (...) {
    return kNoMemory;
  }
}

}  // namespace torpor::shim
