#include "server/daemon/descriptor_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "server/daemon/service_manager.h"

namespace torpor::server {
namespace {

constexpr int kFirstKept = 3;  // behind standard error
constexpr std::size_t kLongestName = 255;

std::optional<std::size_t> NumberIn(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  std::size_t number = 0;
  const char* const end = text + std::strlen(text);
  if (std::from_chars(text, end, number).ptr != end || end == text) return std::nullopt;
  return number;
}

std::vector<std::string> NamesOfKept() {
  const char* const variable = std::getenv("LISTEN_FDNAMES");
  std::string_view rest(variable == nullptr ? "" : variable);
  std::vector<std::string> names;
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return names;
}

}  // namespace

bool IsDescriptorName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != ':'; });
}

DescriptorStore::DescriptorStore(const std::map<std::string, UniqueFd>& kept)
    : capacity_(std::getenv("NOTIFY_SOCKET") == nullptr ? 0 : NumberIn("FDSTORE").value_or(0)) {
  for (const auto& [name, descriptor] : kept) names_.insert(name);
}

absl::Status DescriptorStore::Keep(const std::string& name, int descriptor) {
  if (!is_available()) {
    return absl::FailedPreconditionError(
        "no service manager keeps descriptors: NOTIFY_SOCKET or FDSTORE is not set; start torpord "
        "by torpor-init, or by a systemd unit with FileDescriptorStoreMax=");
  }
  if (!IsDescriptorName(name)) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is no name for a descriptor", name));
  }
  if (names_.contains(name)) {
    return absl::AlreadyExistsError(fmt::format("a descriptor is kept as {} already", name));
  }
  if (names_.size() >= capacity_) {
    return absl::ResourceExhaustedError(
        fmt::format("the service manager keeps {} descriptors and no more; raise torpor-init's "
                    "--store-max or the unit's FileDescriptorStoreMax=",
                    capacity_));
  }
  TORPOR_RETURN_IF_ERROR(
      SendToServiceManager(fmt::format("FDSTORE=1\nFDNAME={}", name), descriptor));
  names_.insert(name);
  return absl::OkStatus();
}

void DescriptorStore::Remove(const std::string& name) {
  if (names_.erase(name) == 0) return;
  SendToServiceManager(fmt::format("FDSTOREREMOVE=1\nFDNAME={}", name)).IgnoreError();
}

std::map<std::string, UniqueFd> DescriptorStore::TakeKept() {
  const bool is_for_us = NumberIn("LISTEN_PID") == static_cast<std::size_t>(getpid());
  const std::size_t count = is_for_us ? NumberIn("LISTEN_FDS").value_or(0) : 0;
  const std::vector<std::string> names = NamesOfKept();
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(name);
  std::map<std::string, UniqueFd> kept;
  for (std::size_t i = 0; i < count; ++i) {
    UniqueFd descriptor(kFirstKept + static_cast<int>(i));
    // Without a name nobody can tell what it is.
    if (i >= names.size() || fcntl(descriptor.get(), F_SETFD, FD_CLOEXEC) != 0) continue;
    kept.emplace(names[i], std::move(descriptor));
  }
  return kept;
}

}  // namespace torpor::server
