#pragma once

#include <nvrtc.h>

#include <type_traits>

namespace torpor::shim {

// A function of NVIDIA's libnvrtc; null, with a line on stderr, if no such library is found. The
// library is opened at the first call, in this order: the path in TORPOR_NVRTC,
// libnvrtc.nvidia.so.13 beside our library, a library that the process has loaded, the first one
// but ours in LD_LIBRARY_PATH, the loader's cache, the toolkit's usual place.
void* RealFunction(const char* name);

// Calls NVIDIA's function `name` with the type of `type`. Returns NVRTC_ERROR_INTERNAL_ERROR if the
// function is not found.
template <typename... Parameters>
nvrtcResult CallReal(nvrtcResult (*type)(Parameters...), const char* name,
                     std::type_identity_t<Parameters>... arguments) {
  const auto function = reinterpret_cast<decltype(type)>(RealFunction(name));
  return function ? function(arguments...) : NVRTC_ERROR_INTERNAL_ERROR;
}

}  // namespace torpor::shim
