#include "server/executor/session_memory/peer_pools.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/thread_name.h"

namespace torpor::executor {

absl::StatusOr<std::unique_ptr<PeerPools>> PeerPools::Start(const Device& device) {
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return absl::ErrnoToStatus(errno, "cannot create an eventfd");
  std::unique_ptr<PeerPools> pools(new PeerPools(device, std::move(wake)));
  pools->thread_ = std::thread([&watched = *pools] { watched.Watch(); });
  return pools;
}

PeerPools::~PeerPools() {
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

absl::StatusOr<std::shared_ptr<PeerPool>> PeerPools::Get(const std::string& socket_path,
                                                         const PoolDescription& what,
                                                         const UniqueFd& connection) {
  if (std::shared_ptr<PeerPool> known = Find(socket_path, what); known != nullptr) return known;
  TORPOR_ASSIGN_OR_RETURN(std::shared_ptr<PeerPool> made, PeerPool::Reserve(device_, what));
  UniqueFd watched(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (!watched) return absl::ErrnoToStatus(errno, "cannot watch a peer");
  Entry former;  // destroyed without the lock: unmapping takes time
  {
    MutexLock lock(&mutex_);
    Entry& entry = entries_[socket_path];
    // Another swap-in may have been faster.
    if (entry.pool != nullptr && entry.pool->description() == what) return entry.pool;
    if (!keeps_mappings_) made->UnmapAfterUse();
    former = std::exchange(entry, Entry{made, std::move(watched)});
  }
  eventfd_write(wake_.get(), 1);
  return made;
}

std::shared_ptr<PeerPool> PeerPools::Find(const std::string& socket_path,
                                          const PoolDescription& what) const {
  ReaderMutexLock lock(&mutex_);
  const auto entry = entries_.find(socket_path);
  const bool is_known = entry != entries_.end() && entry->second.pool->description() == what;
  return is_known ? entry->second.pool : nullptr;
}

void PeerPools::UnmapAfterUse() {
  std::vector<std::shared_ptr<PeerPool>> present;
  {
    MutexLock lock(&mutex_);
    keeps_mappings_ = false;
    for (const auto& [path, entry] : entries_) present.push_back(entry.pool);
  }
  for (const std::shared_ptr<PeerPool>& pool : present) pool->UnmapAfterUse();
}

std::size_t PeerPools::count() const {
  ReaderMutexLock lock(&mutex_);
  return entries_.size();
}

void PeerPools::Watch() {
  NameThread("peer-pools");
  if (const absl::Status current = device_.MakeCurrent(); !current.ok()) {
    spdlog::error("the end of other executors goes unseen: {}", current.ToString());
    return;
  }
  while (true) {
    std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
    {
      MutexLock lock(&mutex_);
      if (is_stopping_) return;
      // Answers are for the swap-ins, which share the connection.
      for (const auto& [path, entry] : entries_) {
        polled.push_back({entry.connection.get(), POLLRDHUP, 0});
      }
    }
    if (poll(polled.data(), polled.size(), -1) < 0) continue;  // EINTR
    eventfd_t ignored = 0;
    eventfd_read(wake_.get(), &ignored);
    for (std::size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents != 0) Drop(polled[i].fd);
    }
  }
}

void PeerPools::Drop(int connection) {
  Entry dropped;  // destroyed without the lock
  MutexLock lock(&mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->second.connection.get() != connection) continue;
    dropped = std::move(entry->second);
    entries_.erase(entry);
    return;
  }
}

}  // namespace torpor::executor
