#pragma once

#include <cstdint>
#include <span>

namespace torpor::executor {

// Whether code of a module, on a device of `compute_capability` (10 * major + minor), may write to
// a variable of the module or disclose a variable's address, in which case sessions must not share
// the module. In machine code a constant counts if code has the constant's address. Returns true
// for anything unreadable or undecidable, and for modules linked at load time. Accepts any bytes.
bool CodeMayUseVariables(std::span<const std::uint8_t> image, unsigned compute_capability);

}  // namespace torpor::executor
