#include "server/config/function_command.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/status_macros.h"

namespace torpor::server {
namespace {

constexpr std::size_t kEntryBytes =
    std::size_t{64} * 1024;  // of a user or a group with many members

// Variables that torpord itself gives the command.
constexpr std::array<std::string_view, 3> kOwnVariables = {"TORPOR_SOCKET", "TORPOR_TOKEN",
                                                           "TORPOR_TOKEN_FILE"};

std::optional<unsigned> NumberOf(const std::string& text) {
  unsigned number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

std::optional<ProcessUser> UserOf(const std::string& text) {
  std::vector<char> space(kEntryBytes);
  passwd entry{};
  passwd* found = nullptr;
  const auto number = NumberOf(text);
  if (number) {
    getpwuid_r(*number, &entry, space.data(), space.size(), &found);
  } else {
    getpwnam_r(text.c_str(), &entry, space.data(), space.size(), &found);
  }
  if (found != nullptr)
    return ProcessUser{found->pw_uid, found->pw_gid, found->pw_name, found->pw_dir};
  // A number needs no entry.
  if (number) return ProcessUser{*number, *number, text, "/"};
  return std::nullopt;
}

std::optional<gid_t> GroupOf(const std::string& text) {
  if (const auto number = NumberOf(text)) return *number;
  std::vector<char> space(kEntryBytes);
  group entry{};
  group* found = nullptr;
  getgrnam_r(text.c_str(), &entry, space.data(), space.size(), &found);
  return found == nullptr ? std::nullopt : std::optional<gid_t>(found->gr_gid);
}

bool IsNameOfVariable(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

absl::StatusOr<gid_t> FindGroup(const std::string& text) {
  if (const std::optional<gid_t> group = GroupOf(text)) return *group;
  return absl::InvalidArgumentError(
      fmt::format("there is no group {}; create it, or name another", text));
}

absl::StatusOr<ProcessUser> FindUser(const std::string& text) {
  const std::size_t colon = text.find(':');
  std::optional<ProcessUser> user = UserOf(text.substr(0, colon));
  if (!user) {
    return absl::InvalidArgumentError(
        fmt::format("user: there is no user {}; add one, or name another", text.substr(0, colon)));
  }
  if (colon == std::string::npos) return *user;
  const std::optional<gid_t> group = GroupOf(text.substr(colon + 1));
  if (!group) {
    return absl::InvalidArgumentError(fmt::format(
        "user: there is no group {}; add one, or name another", text.substr(colon + 1)));
  }
  user->group = *group;
  return *user;
}

bool HasCommand(const FunctionConfig& function) {
  return std::ranges::any_of(InstancesOf(function), [](const InstanceConfig& instance) {
    return !instance.command.empty();
  });
}

absl::Status CheckUser(const FunctionConfig& function, uid_t own) {
  if (!HasCommand(function)) return absl::OkStatus();
  if (function.user.empty()) {
    if (own != 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "user is missing; torpord runs as root, and starts a command as another user only: write "
        "`user: NAME` or `user: NAME:GROUP`");
  }
  TORPOR_ASSIGN_OR_RETURN(const ProcessUser user, FindUser(function.user));
  if (user.user == 0) {
    return absl::InvalidArgumentError("user: a command never runs as root; name another user");
  }
  if (own == 0 || own == user.user) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("user: torpord runs as user {}, and can start no command as {}; drop `user`, or "
                  "start torpord as root",
                  own, function.user));
}

absl::Status CheckCommand(const InstanceConfig& instance) {
  if (!instance.command.empty() && !instance.command.front().starts_with('/')) {
    return absl::InvalidArgumentError(
        fmt::format("command: \"{}\" is not the absolute path of a program; write for example "
                    "[\"/usr/bin/python3\", \"/srv/digits/serve.py\"]",
                    instance.command.front()));
  }
  for (const std::string& entry : instance.environment) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (name.size() == entry.size() || !IsNameOfVariable(name)) {
      return absl::InvalidArgumentError(
          fmt::format("env: \"{}\" is not NAME=value; write for example OMP_NUM_THREADS=1", entry));
    }
    if (std::ranges::find(kOwnVariables, name) != kOwnVariables.end()) {
      return absl::InvalidArgumentError(
          fmt::format("env: torpord itself sets {}; drop the entry", name));
    }
  }
  return absl::OkStatus();
}

}  // namespace torpor::server
