#pragma once

#include <cstdint>
#include <memory>

#include "client_shim/cublas/handle_table.h"

namespace torpor::shim {

// A handle of the session for calls in graphs, unknown to the program. CUDA copies the settings of
// a handle into the graph when a call is captured: the captured handle has and keeps those
// settings, whatever the program sets on its own handle. Lives as long as the graphs that use it.
class CapturedHandle {
 public:
  // Finds or makes the handle with these settings. Calls captured on different streams, which may
  // run in parallel or on different devices, never share a handle. Thread-safe.
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
