#include "emulator/exec/interface/system_functions.h"

#include <algorithm>
#include <array>

namespace torpor::emulator {
namespace {

constexpr std::array<std::string_view, 4> kKnown = {"vprintf", "__assertfail", "malloc", "free"};

// cudaLaunchDevice, __cudaCDP2GetParameterBuffer, cnpStreamCreate, __cuda_syscall_...
constexpr std::array<std::string_view, 4> kDeviceRuntimePrefixes = {"cuda", "__cudaCDP", "cnp",
                                                                    "__cuda_syscall"};

}  // namespace

bool IsSystemFunction(std::string_view name) {
  return std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end() ||
         IsDeviceRuntimeFunction(name);
}

bool IsDeviceRuntimeFunction(std::string_view name) {
  return std::any_of(kDeviceRuntimePrefixes.begin(), kDeviceRuntimePrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace torpor::emulator
