#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

enum class ParseError { kSyntax };

// Reads one translation unit. What is well formed but unknown (an opcode, a directive that
// declares something exotic) is kept as Opcode::kUnknown and reported by the code generator.
// Safe on hostile input.
Result<Module, ParseError> Parse(std::string_view text);

}  // namespace torpor::ptx
