#pragma once

#include <string>

// What long runs have from their environment, and how they tell of themselves.
namespace torpor::e2e {

// The variable's value, or `otherwise` where it is empty or not there.
std::string Environment(const char* name, const std::string& otherwise);

// A number that differs from run to run.
std::string RandomSeed();

// To stdout at once, also where that is no terminal.
void Say(const std::string& text);

}  // namespace torpor::e2e
