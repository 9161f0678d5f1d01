#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace torpor::torporctl {

// A program named on the command line of `torporctl run`.
struct UserProgram {
  std::vector<std::string> arguments;  // the program's name first
  std::string path;                    // found in PATH, like execvp
};

// Finds the program in PATH. Returns NotFound or PermissionDenied like a shell.
absl::StatusOr<UserProgram> FindUserProgram(std::vector<std::string> arguments);

// Returns the variables to add to the program's environment: the daemon's socket, the function's
// token, and the client libraries ahead of all others.
std::map<std::string, std::string> ClientEnvironment(const std::string& client_dir,
                                                     const std::string& socket,
                                                     const std::string& token);

// Sets the variables in this process.
void SetEnvironment(const std::map<std::string, std::string>& variables);

// Replaces this process by the program. Returns only after a failure, with a shell's exit status
// for the failure.
int Execute(const UserProgram& program);

// Prints a line on stderr, after "torporctl: ".
void Say(const std::string& line);

}  // namespace torpor::torporctl
