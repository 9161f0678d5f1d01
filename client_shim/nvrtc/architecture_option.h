#pragma once

#include <string>
#include <vector>

namespace torpor::shim {

// The options of a compilation, with the real architecture (sm_90, for machine code) replaced by
// the virtual architecture (compute_90, for PTX).
struct VirtualOptions {
  std::vector<std::string> options;
  bool is_changed = false;  // whether the original options ask for machine code
};
// Replaces the values of all forms of the option: -arch=X, -arch X, --gpu-architecture=X.
VirtualOptions ForVirtualArchitecture(int count, const char* const* options);

}  // namespace torpor::shim
