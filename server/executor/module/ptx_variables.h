#pragma once

#include <string_view>

#include "server/executor/module/variable_names.h"

namespace torpor::executor {

// The variables of PTX text, which may be anything, as VariablesOf wants them. Reads it once.
void FindPtxVariables(std::string_view text, VariableNames& names);

// CodeMayUseVariables of PTX text, which may be anything.
bool PtxMayUseVariables(std::string_view text);

}  // namespace torpor::executor
