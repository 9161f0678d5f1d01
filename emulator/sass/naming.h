#pragma once

#include <string>
#include <vector>

#include "emulator/sass/statement.h"

namespace torpor::sass {

// Gives each value that a machine register holds in turn a PTX register of its own, so that the
// emulator's lane analysis sees through reused registers. Writes that may reach the same reader are
// one value. Two registers that are always written as a pair become one 64-bit register. Returns
// the body's declarations and statements.
std::string NameAndPrint(const std::vector<Statement>& prologue,
                         const std::vector<Statement>& statements,
                         const std::vector<Width>& temporaries);

}  // namespace torpor::sass
