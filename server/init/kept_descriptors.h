#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "base/unique_fd.h"

namespace torpor::init {

// What a service manager keeps for its program over the program's end (the other side of
// server/daemon/descriptor_store.h). Not thread-safe.
class KeptDescriptors {
 public:
  explicit KeptDescriptors(std::size_t capacity) : capacity_(capacity) {}

  std::size_t capacity() const { return capacity_; }
  const std::map<std::string, UniqueFd>& by_name() const { return by_name_; }

  // Of two descriptors with one name the later one stays. InvalidArgument for a name that could not
  // be told to the program again, ResourceExhausted beyond the capacity; the descriptor is closed
  // then.
  absl::Status Keep(const std::string& name, UniqueFd descriptor);
  // Closes the descriptor, if there is one.
  void Remove(const std::string& name) { by_name_.erase(name); }

 private:
  const std::size_t capacity_;
  std::map<std::string, UniqueFd> by_name_;
};

}  // namespace torpor::init
