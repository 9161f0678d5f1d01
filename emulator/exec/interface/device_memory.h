#pragma once

#include <cstdint>

#include "base/units.h"
#include "emulator/exec/interface/exec_error.h"

namespace torpor::emulator {

// Device memory as kernels see it. Device addresses are host addresses of the process inside a
// single window. Pages of the window without an allocation are inaccessible: a stray access faults,
// and exec turns the fault into kIllegalAddress. Outside the window, only addresses for which
// IsAccessible returns true are legal (registered host memory). Implemented by driver; called by
// kernels from any thread.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // The window, the same for the whole life of the process.
  virtual std::uint64_t window_begin() const = 0;
  virtual std::uint64_t window_end() const = 0;

  // Slow path: whether [address, address + size) outside the window may be accessed.
  virtual bool IsAccessible(std::uint64_t address, Bytes size) const = 0;

  // Memory for a module's global and constant variables, zeroed, 256-byte aligned, inside the
  // window. Freed by Free.
  virtual ExecResult<std::uint64_t> Allocate(Bytes size) = 0;
  virtual void Free(std::uint64_t address) = 0;
};

}  // namespace torpor::emulator
