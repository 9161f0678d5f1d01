#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/config/config.h"

// The commands of functions: programs that torpord starts by itself.
namespace torpor::server {

// As whom a process runs.
struct ProcessUser {
  uid_t user = 0;
  gid_t group = 0;
  std::string name{};
  std::string home{};

  bool operator==(const ProcessUser&) const = default;
};

// Returns the user of `text`, as UserKind has it, from the system's list of users. InvalidArgument
// if the system knows no such user or group.
absl::StatusOr<ProcessUser> FindUser(const std::string& text);

// Returns the group of this name or number. InvalidArgument if the system knows none of the name.
absl::StatusOr<gid_t> FindGroup(const std::string& text);

// Whether a daemon that runs as `own` may start the function's command, if it has one: root does so
// as another user only, and any other user only as itself. InvalidArgument tells how to mend it.
absl::Status CheckUser(const FunctionConfig& function, uid_t own);

// Checks the texts of the instance's command and environment; opens nothing.
absl::Status CheckCommand(const InstanceConfig& instance);

// Whether an instance of the function has a command.
bool HasCommand(const FunctionConfig& function);

}  // namespace torpor::server
