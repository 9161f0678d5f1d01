#include "emulator/driver/context/context_limits.h"

#include <utility>

#include "base/try.h"

namespace torpor::emulator {
namespace {

// Threads of a multiprocessor for which a real driver keeps local memory.
constexpr Bytes kStacksPerMultiprocessor = 2048;

}  // namespace

ContextLimits::ContextLimits(DriverDevice& device) : device_(device) {
  limits_[CU_LIMIT_STACK_SIZE] = kKiB;
  limits_[CU_LIMIT_PRINTF_FIFO_SIZE] = kMiB;
  limits_[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 * kMiB;
  limits_[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  limits_[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  limits_[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

CUresult ContextLimits::Set(CUlimit limit, std::size_t value) {
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(mutex_);
  const bool fixed = (limit == CU_LIMIT_PRINTF_FIFO_SIZE && printf_used_) ||
                     (limit == CU_LIMIT_MALLOC_HEAP_SIZE && heap_used_);
  if (fixed) return CUDA_ERROR_INVALID_VALUE;
  if (limit == CU_LIMIT_STACK_SIZE) TORPOR_TRY(TakeStacksLocked(value));
  limits_[limit] = value;
  return CUDA_SUCCESS;
}

std::optional<std::size_t> ContextLimits::Get(CUlimit limit) const {
  if (limit < 0 || limit >= CU_LIMIT_MAX) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return limits_[limit];
}

CUresult ContextLimits::Use(const KernelInfo& kernel) {
  if (!device_.strict().memory_overheads) return CUDA_SUCCESS;
  const std::lock_guard lock(mutex_);
  printf_used_ = printf_used_ || kernel.prints;
  heap_used_ = heap_used_ || kernel.allocates;
  return TakeStacksLocked(kernel.local_bytes);
}

// Call with mutex_ held. The memory grows and never shrinks, as in a real driver.
CUresult ContextLimits::TakeStacksLocked(std::size_t bytes_per_thread) {
  if (!device_.strict().memory_overheads) return CUDA_SUCCESS;
  const Bytes wanted = bytes_per_thread * device_.spec().multiprocessors * kStacksPerMultiprocessor;
  if (wanted <= stacks_.size()) return CUDA_SUCCESS;
  auto more = TakenMemory::Take(device_.budget(), wanted - stacks_.size());
  if (!more) return CUDA_ERROR_OUT_OF_MEMORY;
  stacks_.Add(std::move(*more));
  return CUDA_SUCCESS;
}

}  // namespace torpor::emulator
