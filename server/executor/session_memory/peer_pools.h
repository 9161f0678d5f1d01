#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/peer_pool.h"

namespace torpor::executor {

// The pools of other executors that images were copied from, each kept until the other executor
// ends: that executor's successor needs the memory. A separate thread watches a connection to each.
// Mappings of chunks are kept as long, or, for an executor of one domain, only while copied from.
// Thread-safe.
class PeerPools {
 public:
  // `device` must outlive the object.
  static absl::StatusOr<std::unique_ptr<PeerPools>> Start(const Device& device);
  ~PeerPools();
  PeerPools(const PeerPools&) = delete;
  PeerPools& operator=(const PeerPools&) = delete;

  // Returns the pool `what` of the executor at the other end of `connection`, which serves
  // `socket_path`. A user of the pool keeps the mappings until the user's copies have ended.
  absl::StatusOr<std::shared_ptr<PeerPool>> Get(const std::string& socket_path,
                                                const PoolDescription& what,
                                                const UniqueFd& connection);
  // Lets no pool, present or future, keep a chunk mapped without users (PeerPool::UnmapAfterUse).
  void UnmapAfterUse();
  std::size_t count() const;

 private:
  struct Entry {
    std::shared_ptr<PeerPool> pool;
    UniqueFd connection;  // ends with the other executor
  };

  PeerPools(const Device& device, UniqueFd wake) : device_(device), wake_(std::move(wake)) {}

  std::shared_ptr<PeerPool> Find(const std::string& socket_path, const PoolDescription& what) const;
  void Watch();
  // Forgets the pool whose connection has ended.
  void Drop(int connection);

  const Device& device_;
  const UniqueFd wake_;  // there is another connection, or the end of all

  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by socket
  bool keeps_mappings_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace torpor::executor
