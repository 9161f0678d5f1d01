#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

enum class ParseError { kSyntax };

// Parses one translation unit. Well-formed but unknown input (an opcode, a directive that declares
// something exotic) becomes Opcode::kUnknown, reported later by the code generator. Safe on hostile
// input; the message of a failure names the line.
Result<Module, ParseError> Parse(std::string_view text);

}  // namespace torpor::ptx
