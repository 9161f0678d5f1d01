#pragma once

#include <cstdint>

#include "client_shim/cudart/runtime_functions.h"

// The interface of libcudart.so.13 to libcuda.so.1, a thin library on top: both APIs share streams,
// events, memory and modules, and libcudart holds them.
namespace torpor::shim {

struct DriverSeam {
  // The runtime's own functions. A look-up by name might find a runtime linked into the program.
  RuntimeFunctions runtime;

  // Brackets calls of `runtime`. Returns the earlier state, to be restored afterwards.
  bool (*set_inside_driver_call)(bool is_inside);

  // Whether this thread, or any thread, has called the runtime itself.
  bool (*thread_uses_runtime)();
  bool (*process_uses_runtime)();

  // Functions without equivalent in the runtime API (SetElements, FindLibraryOf).
  cudaError_t (*set_elements)(void* to, std::uint32_t value, std::uint32_t element_bytes,
                              std::uint64_t count, cudaStream_t stream);
  cudaError_t (*find_library_of)(const void* function, cudaLibrary_t& library);
};

}  // namespace torpor::shim

// The one function that libcudart.so.13 exports beside the runtime's (version node
// TORPOR_CUDART_1). Never null.
extern "C" const torpor::shim::DriverSeam* torpor_driver_seam();
