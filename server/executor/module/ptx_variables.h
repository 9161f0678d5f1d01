#pragma once

#include <string_view>

#include "server/executor/module/variable_names.h"

namespace torpor::executor {

// Adds the variables of PTX text to `names`, in one pass, for VariablesOf. Accepts any bytes.
void FindPtxVariables(std::string_view text, VariableNames& names);

// CodeMayUseVariables for PTX text. Accepts any bytes.
bool PtxMayUseVariables(std::string_view text);

}  // namespace torpor::executor
