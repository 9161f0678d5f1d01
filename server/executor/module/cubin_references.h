#pragma once

#include <cstddef>
#include <span>

namespace torpor::executor {

// CodeMayUseVariables of a cubin. The bytes may be anything.
bool CubinMayUseVariables(std::span<const std::byte> bytes);

}  // namespace torpor::executor
