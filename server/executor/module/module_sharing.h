#pragma once

#include <cstdint>
#include <span>

namespace torpor::executor {

// Whether code of a module, on a device of `compute_capability` (10 * major + minor), may write to
// a variable of the module or tell others where it is: then its sessions must not share it.
// Constants count in machine code where it has their addresses. That of what cannot be read or told
// is true, as it is of what is linked when it is loaded. `image` may hold anything.
bool CodeMayUseVariables(std::span<const std::uint8_t> image, unsigned compute_capability);

}  // namespace torpor::executor
