#pragma once

#include <string>
#include <vector>

#include "emulator/sass/statement.h"

namespace torpor::sass {

// Gives each value that a machine register holds in turn a PTX register of its own (what one write
// leaves and another one may leave for the same reader is one value), so that the emulator's
// analysis of lanes sees through registers that are used again. Two registers that are always
// written as a pair are one of 64 bits. Writes the body's declarations and statements.
std::string NameAndPrint(const std::vector<Statement>& prologue,
                         const std::vector<Statement>& statements,
                         const std::vector<Width>& temporaries);

}  // namespace torpor::sass
