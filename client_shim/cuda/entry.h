#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <new>

#include "base/try.h"
#include "client_shim/core/call_tracer.h"
#include "client_shim/core/client_core.h"
#include "client_shim/cudart/driver_seam.h"

// The frame of every entry of the driver API: Always, Initialized or InContext around a lambda. The
// lambda's result, a CUresult or the runtime's cudaError_t, becomes a CUresult. No exception leaves
// an entry, and the runtime's last error is unchanged. `name` is the entry's, for a trace.
namespace torpor::shim {

// The functions that libcudart offers to this library; constant.
inline const DriverSeam& Seam() {
  static const DriverSeam* const seam = torpor_driver_seam();
  return *seam;
}
inline const RuntimeFunctions& Runtime() { return Seam().runtime; }

// Both enumerations have the same numbers for their common errors.
CUresult ToCuResult(cudaError_t error);
inline CUresult ToCuResult(CUresult result) { return result; }

// Runs `body` in any state of the process, even before cuInit.
template <typename Body>
CUresult Always(Body&& body, const char* name = __builtin_FUNCTION()) noexcept {
  const TracedCall traced(name);
  const bool was_inside = Seam().set_inside_driver_call(true);
  CUresult result = CUDA_ERROR_UNKNOWN;
  try {
    result = ToCuResult(body());
  } catch (const std::bad_alloc&) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {  // stays unknown
  }
  Seam().set_inside_driver_call(was_inside);
  return result;
}

// Returns CUDA_SUCCESS if the program or the runtime has called cuInit.
CUresult CheckInitialized();
// As CheckInitialized; the calling thread must have a context, too.
CUresult CheckContext();

// Runs `body` if CheckInitialized succeeds.
template <typename Body>
CUresult Initialized(Body&& body, const char* name = __builtin_FUNCTION()) noexcept {
  return Always(
      [&]() -> CUresult {
        TORPOR_TRY(CheckInitialized());
        return ToCuResult(body());
      },
      name);
}

// Runs `body` if CheckContext succeeds.
template <typename Body>
CUresult InContext(Body&& body, const char* name = __builtin_FUNCTION()) noexcept {
  return Always(
      [&]() -> CUresult {
        TORPOR_TRY(CheckContext());
        return ToCuResult(body());
      },
      name);
}

// Logs once that `what` is not supported and returns CUDA_ERROR_NOT_SUPPORTED.
CUresult Refuse(const char* what);

// Stream 0 of a program that was compiled with --default-stream per-thread.
inline CUstream PerThread(CUstream stream) { return stream ? stream : cudaStreamPerThread; }

// Addresses as the driver's integers and the runtime's pointers; the values are the same.
inline void* At(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
inline CUdeviceptr AddressOf(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
static_assert(sizeof(CUdeviceptr) == sizeof(void*));
inline void** AsPointers(CUdeviceptr* addresses) { return reinterpret_cast<void**>(addresses); }

}  // namespace torpor::shim

// In a function that returns a CUresult: returns a failure of either API.
#define TORPOR_CU_TRY(expression)                                            \
  if (const CUresult torpor_result = ::torpor::shim::ToCuResult(expression); \
      torpor_result != CUDA_SUCCESS)                                         \
  return torpor_result
