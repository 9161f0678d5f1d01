#pragma once

#include "client_shim/core/call_tracer.h"

namespace torpor::shim {

// What `body` returns, or `kNoMemory`: no exception may cross a C entry, and behind those of the
// libraries beside the runtime only an allocation can throw. `entry` names the call for a trace.
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
