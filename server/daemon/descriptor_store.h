#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/unique_fd.h"

namespace torpor::server {

// Whether service managers take `name` for a descriptor: 1 to 255 printable ASCII characters
// without a colon.
bool IsDescriptorName(std::string_view name);

// Descriptors, of memory files as a rule, that outlive this process: its service manager, systemd
// or torpor-init, keeps them by the protocol of sd_notify(3) and gives them to the next process.
// A process that is killed right after Keep or Remove has kept or removed. Not thread-safe.
class DescriptorStore {
 public:
  // `kept`: what TakeKept has returned; the manager still keeps it.
  explicit DescriptorStore(const std::map<std::string, UniqueFd>& kept = {});

  // Whether a manager says that it keeps descriptors (FDSTORE, which systemd sets from version 254
  // on, and NOTIFY_SOCKET).
  bool is_available() const { return capacity_ > 0; }

  // Has the manager keep what `descriptor` refers to; the caller's stays open and may be closed.
  // FailedPrecondition without a manager that keeps descriptors, InvalidArgument for a name that is
  // none, AlreadyExists for a name in use, ResourceExhausted beyond what the manager keeps,
  // Unavailable if the manager does not listen.
  absl::Status Keep(const std::string& name, int descriptor);

  // Has the manager close its descriptor. Does nothing if none has the name. If the manager does
  // not listen, the next process finds the descriptor among its own.
  void Remove(const std::string& name);

  // Returns what the manager kept over the end of an earlier process, close-on-exec, by name.
  // Unsets LISTEN_FDS and its kin, so that only the first call returns any and children inherit
  // none. Call before the first other thread starts.
  static std::map<std::string, UniqueFd> TakeKept();

 private:
  std::size_t capacity_;
  std::set<std::string> names_;  // kept
};

}  // namespace torpor::server
