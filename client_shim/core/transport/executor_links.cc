#include "client_shim/core/transport/executor_links.h"

#include <algorithm>

namespace torpor::shim {

ExecutorLinkPtr ExecutorLinks::Find(const std::string& socket, std::uint64_t epoch) const {
  const auto found = links_.find({socket, epoch});
  return found == links_.end() ? nullptr : found->second;
}

void ExecutorLinks::Add(const std::string& socket, std::uint64_t epoch, ExecutorLinkPtr link) {
  links_.emplace(Key{socket, epoch}, std::move(link));
}

bool ExecutorLinks::Remove(const ExecutorLinkPtr& link) {
  return std::erase_if(links_, [&](const auto& entry) { return entry.second == link; }) > 0;
}

std::vector<ExecutorLinkPtr> ExecutorLinks::All() const {
  std::vector<ExecutorLinkPtr> all;
  for (const auto& [key, link] : links_) all.push_back(link);
  return all;
}

std::vector<ExecutorLinkPtr> ExecutorLinks::At(const std::string& socket) const {
  std::vector<ExecutorLinkPtr> found;
  for (const auto& [key, link] : links_)
    if (key.first == socket) found.push_back(link);
  return found;
}

std::uint64_t ExecutorLinks::OldestKnownVersion(std::uint64_t newest) const {
  std::uint64_t oldest = newest;
  for (const auto& [key, link] : links_) oldest = std::min(oldest, link->known_version());
  return oldest;
}

}  // namespace torpor::shim
