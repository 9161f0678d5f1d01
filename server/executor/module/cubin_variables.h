#pragma once

#include <cstddef>
#include <span>

#include "server/executor/module/variable_names.h"

namespace torpor::executor {

// Finds the variables of a cubin, linked or relocatable, for VariablesOf. Accepts any bytes.
void FindCubinVariables(std::span<const std::byte> bytes, VariableNames& names);

}  // namespace torpor::executor
