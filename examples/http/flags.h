#pragma once

#include <map>
#include <string>

namespace torpor::examples {

// The command line of an example: `--name value` pairs, for the names in `known` only, whose
// values start as given there. Prints `usage` and ends the process for --help (status 0) and
// for anything else (status 2).
std::map<std::string, std::string> ParseFlags(int argc, char** argv, const char* usage,
                                              std::map<std::string, std::string> known);

// The flag as a whole number within [low, high]; ends the process with status 2 otherwise.
int IntFlag(const std::map<std::string, std::string>& flags, const std::string& name, int low,
            int high);

// The folder of the running program, where its data files lie too.
std::string ProgramFolder();

}  // namespace torpor::examples
