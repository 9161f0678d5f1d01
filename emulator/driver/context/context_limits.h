#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>

#include "emulator/driver/device/device.h"
#include "emulator/driver/device/taken_memory.h"
#include "emulator/exec/program.h"

namespace torpor::emulator {

// The limits of cuCtxSetLimit of one context, and the device memory behind the stacks of threads.
// With the device's strictness in `memory_overheads`, the sizes of the printf buffer and of
// malloc's heap are fixed once a kernel that uses them has been launched, and stacks take memory:
// the largest one for every thread that the device runs at a time. Thread-safe.
class ContextLimits {
 public:
  // `device` must outlive the limits.
  explicit ContextLimits(DriverDevice& device);

  // Returns CUDA_ERROR_INVALID_VALUE for an unknown or fixed limit, CUDA_ERROR_OUT_OF_MEMORY if the
  // device lacks memory for larger stacks. Call for CU_LIMIT_STACK_SIZE with the context idle.
  CUresult Set(CUlimit limit, std::size_t value);
  std::optional<std::size_t> Get(CUlimit limit) const;

  // Prepares a launch of `kernel`: fixes the limits that the kernel uses, and takes memory for the
  // kernel's stack. Returns CUDA_ERROR_OUT_OF_MEMORY if the device lacks it.
  CUresult Use(const KernelInfo& kernel);

 private:
  CUresult TakeStacksLocked(std::size_t bytes_per_thread);

  DriverDevice& device_;
  mutable std::mutex mutex_;  // guards the members below
  std::array<std::size_t, CU_LIMIT_MAX> limits_{};
  bool printf_used_ = false;
  bool heap_used_ = false;
  TakenMemory stacks_;
};

}  // namespace torpor::emulator
