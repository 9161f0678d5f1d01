#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace torpor::torporctl {

// A program that a user wants to run, and what it needs to reach Torpor.
struct UserProgram {
  std::vector<std::string> arguments;  // with the program's name first
  std::string path;                    // found in PATH, as execvp would
};

// NotFound or PermissionDenied where it cannot be run.
absl::StatusOr<UserProgram> FindUserProgram(std::vector<std::string> arguments);

// What the program's environment must say on top of ours: the daemon's socket, the function's
// token, and the client libraries before any others.
std::map<std::string, std::string> ClientEnvironment(const std::string& client_dir,
                                                     const std::string& socket,
                                                     const std::string& token);

void SetEnvironment(const std::map<std::string, std::string>& variables);

// Replaces this process by the program. Returns only where that fails, with the exit status that
// a shell would give.
int Execute(const UserProgram& program);

// One line on stderr, prefixed by our name.
void Say(const std::string& line);

// The folder with the client libraries: ../lib/torpor/client from the running program.
std::string ClientLibraryDirectory();

}  // namespace torpor::torporctl
