#pragma once

#include <nvrtc.h>

#include <type_traits>

namespace torpor::shim {

// A function of NVIDIA's libnvrtc, which is opened at the first call: the one that TORPOR_NVRTC
// names, else libnvrtc.nvidia.so.13 beside ours, else one that the process has loaded, else the
// first that is not ours in LD_LIBRARY_PATH, the loader's cache, or the toolkit's usual place.
// Null, and a line on stderr, if there is none.
void* RealFunction(const char* name);

// Calls NVIDIA's function of that name and of `type`'s type. NVRTC_ERROR_INTERNAL_ERROR if there is
// none.
template <typename... Parameters>
nvrtcResult CallReal(nvrtcResult (*type)(Parameters...), const char* name,
                     std::type_identity_t<Parameters>... arguments) {
  const auto function = reinterpret_cast<decltype(type)>(RealFunction(name));
  return function ? function(arguments...) : NVRTC_ERROR_INTERNAL_ERROR;
}

}  // namespace torpor::shim
