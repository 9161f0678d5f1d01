#pragma once

#include <cstdint>

#include "client_shim/cudart/runtime_functions.h"

// What libcuda.so.1 finds in libcudart.so.13, over which it is a thin library: both APIs have the
// same streams, events, memory and modules, and libcudart is what holds them.
namespace torpor::shim {

struct DriverSeam {
  // The runtime's own functions: by name alone they might be found in the program, which may have
  // a runtime inside.
  RuntimeFunctions runtime;

  // Brackets calls of the above. Returns what was so before, which is set again behind them.
  bool (*set_inside_driver_call)(bool is_inside);

  // Whether this thread, or any, has called the runtime itself.
  bool (*thread_uses_runtime)();
  bool (*process_uses_runtime)();

  // What the runtime API has no words for.
  cudaError_t (*set_elements)(void* to, std::uint32_t value, std::uint32_t element_bytes,
                              std::uint64_t count, cudaStream_t stream);
  cudaError_t (*find_library_of)(const void* function, cudaLibrary_t& library);
};

}  // namespace torpor::shim

// The one function that libcudart.so.13 exports beside the runtime's (version node
// TORPOR_CUDART_1). Never null.
extern "C" const torpor::shim::DriverSeam* torpor_driver_seam();
