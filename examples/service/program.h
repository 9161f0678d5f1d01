#pragma once

#include <map>
#include <string>

namespace torpor::examples {

// An example's command line: `--name value` pairs.
using Flags = std::map<std::string, std::string>;

// The flags named in `known`, whose values start as given there. Prints `usage` and ends the
// process for --help (status 0) and for anything else (status 2).
Flags ParseFlags(int argc, char** argv, const std::string& usage, Flags known);

// The flag as a whole number within [low, high]; ends the process with status 2 otherwise.
int IntFlag(const Flags& flags, const std::string& name, int low, int high);

// The folder of the running program, where its data files lie too.
std::string ProgramFolder();

// What main() does: calls `run` and returns its result. What it throws is told on stderr, and
// the status is 1.
int RunProgram(const char* name, int (*run)(int, char**), int argc, char** argv);

}  // namespace torpor::examples
