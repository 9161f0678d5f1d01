#pragma once

#include <cstddef>
#include <span>

#include "server/executor/module/variable_names.h"

namespace torpor::executor {

// The variables of a cubin, linked or relocatable, as VariablesOf wants them. The bytes may be
// anything.
void FindCubinVariables(std::span<const std::byte> bytes, VariableNames& names);

}  // namespace torpor::executor
