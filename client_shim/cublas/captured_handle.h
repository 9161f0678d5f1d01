#pragma once

#include <cstdint>
#include <memory>

#include "client_shim/cublas/handle_table.h"

namespace torpor::shim {

// A handle of the session that no program knows, for calls in graphs. CUDA takes the settings of a
// handle over into the graph when a call is captured: this has them and keeps them, whatever the
// program does with its own. It lives as long as the graphs that use it.
class CapturedHandle {
 public:
  // That with these settings; calls that are captured on different streams, which may run side by
  // side or on different devices, never share one. Thread-safe.
  static cudaError_t Find(ClientCore& core, const CublasSettings& settings,
                          std::shared_ptr<const CapturedHandle>& found);

  CapturedHandle(ClientCore& core, std::uint64_t id) : handle_(core, id) {}
  ~CapturedHandle();
  CapturedHandle(const CapturedHandle&) = delete;
  CapturedHandle& operator=(const CapturedHandle&) = delete;

  std::uint64_t id() const { return handle_.id(); }

 private:
  CublasHandle handle_;
};

}  // namespace torpor::shim
