#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client_shim/core/transport/executor_link.h"

namespace torpor::shim {

// The open streams of a session by executor process. Guarded by the owner's mutex.
class ExecutorLinks {
 public:
  // The link to process number `epoch` at `socket`; null if none is open.
  ExecutorLinkPtr Find(const std::string& socket, std::uint64_t epoch) const;
  void Add(const std::string& socket, std::uint64_t epoch, ExecutorLinkPtr link);
  // False if the link is not in the table (any more).
  bool Remove(const ExecutorLinkPtr& link);

  std::vector<ExecutorLinkPtr> All() const;
  // The links to processes of any number at `socket`.
  std::vector<ExecutorLinkPtr> At(const std::string& socket) const;
  // The oldest version of the journal that any executor knows; `newest` if no link is open.
  std::uint64_t OldestKnownVersion(std::uint64_t newest) const;

 private:
  using Key = std::pair<std::string, std::uint64_t>;  // socket and epoch
  std::map<Key, ExecutorLinkPtr> links_;
};

}  // namespace torpor::shim
