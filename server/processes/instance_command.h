#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/config.h"
#include "server/config/function_command.h"

namespace torpor::server {

// How an instance's process is started.
struct InstanceCommand {
  std::vector<std::string> words;                    // the program's absolute path first
  std::map<std::string, std::string> environment{};  // all of it
  std::optional<ProcessUser> user{};                 // nullopt: as this process
  std::string token_file{};  // the process must be able to read it; empty: none
  Duration stop_grace{};

  // Tells processes apart that were started in different ways: a text without blanks.
  std::string Fingerprint() const;

  bool operator==(const InstanceCommand&) const = default;
};

// Returns the commands of all instances that have one, by FullNameOf. `client_dir`: the folder of
// the client libraries, which the process gets if the folder is there. InvalidArgument if a user is
// not known.
absl::StatusOr<std::map<std::string, InstanceCommand>> CommandsOf(const Config& config,
                                                                  const std::string& client_dir);

}  // namespace torpor::server
