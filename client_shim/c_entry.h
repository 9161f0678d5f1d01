#pragma once

namespace torpor::shim {

// What `body` returns, or `kNoMemory`: no exception may cross a C entry, and behind those of the
// libraries beside the runtime only an allocation can throw.
template <auto kNoMemory, typename Body>
decltype(kNoMemory) WithoutExceptions(Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return kNoMemory;
  }
}

}  // namespace torpor::shim
