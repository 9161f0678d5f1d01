#include "server/processes/instance_command.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/daemon/client_libraries.h"

namespace torpor::server {
namespace {

constexpr const char* kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// Nothing of torpord's own environment, which may tell secrets and names torpord's GPUs.
std::map<std::string, std::string> EnvironmentOf(const Config& config,
                                                 const FunctionConfig& function,
                                                 const InstanceConfig& instance,
                                                 const std::optional<ProcessUser>& user,
                                                 const std::string& client_dir) {
  std::map<std::string, std::string> environment = {{"PATH", kDefaultPath}};
  if (user) {
    environment["USER"] = environment["LOGNAME"] = user->name;
    environment["HOME"] = user->home;
  }
  const std::size_t colon = instance.upstream.rfind(':');
  if (colon != std::string::npos) environment["PORT"] = instance.upstream.substr(colon + 1);
  for (const std::string& entry : instance.environment) {
    const std::size_t equals = entry.find('=');
    environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  environment["TORPOR_SOCKET"] = config.client_socket;
  environment["TORPOR_INSTANCE"] = FullNameOf(function, instance);
  if (!instance.token_file.empty()) environment["TORPOR_TOKEN_FILE"] = instance.token_file;
  if (access(client_dir.c_str(), X_OK) != 0) return environment;
  for (const auto& [name, first] :
       {std::pair<std::string, std::string>{"LD_LIBRARY_PATH", client_dir},
        {"LD_PRELOAD", PreloadOf(client_dir)}}) {
    environment[name] = Prepended(first, environment[name]);
  }
  return environment;
}

}  // namespace

std::string InstanceCommand::Fingerprint() const {
  std::string text;
  // The length makes different lists different texts.
  const auto add = [&text](const std::string& part) {
    absl::StrAppend(&text, part.size(), ":", part);
  };
  add(absl::StrCat(words.size()));
  for (const std::string& word : words) add(word);
  for (const auto& [name, value] : environment) {
    add(name);
    add(value);
  }
  add(token_file);
  if (user) absl::StrAppend(&text, user->user, "/", user->group);
  return ToHex(Sha256(text.data(), text.size()));
}

absl::StatusOr<std::map<std::string, InstanceCommand>> CommandsOf(const Config& config,
                                                                  const std::string& client_dir) {
  std::map<std::string, InstanceCommand> commands;
  for (const auto& [name, function] : config.functions) {
    if (!HasCommand(function)) continue;
    std::optional<ProcessUser> user;
    if (!function.user.empty()) {
      TORPOR_ASSIGN_OR_RETURN(user, FindUser(function.user));
    }
    for (const InstanceConfig& instance : InstancesOf(function)) {
      if (instance.command.empty()) continue;
      commands[FullNameOf(function, instance)] = {
          .words = instance.command,
          .environment = EnvironmentOf(config, function, instance, user, client_dir),
          .user = user,
          .token_file = instance.token_file,
          .stop_grace = function.stop_grace};
    }
  }
  return commands;
}

}  // namespace torpor::server
