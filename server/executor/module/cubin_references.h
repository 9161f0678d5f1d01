#pragma once

#include <cstddef>
#include <span>

namespace torpor::executor {

// CodeMayUseVariables for a cubin. Accepts any bytes.
bool CubinMayUseVariables(std::span<const std::byte> bytes);

}  // namespace torpor::executor
