#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/pool_description.h"
#include "server/executor/image/pool_socket.h"

namespace torpor::executor {

// An executor's connection to the owner of its GPU's memory (PoolOwner). Once an answer has failed
// to come, every request is Unavailable: a late answer could pass for the next one. Thread-safe.
class PoolClient {
 public:
  // Waits at most `patience` for the owner to listen. `socket_path`: the owner's.
  static absl::StatusOr<std::unique_ptr<PoolClient>> Connect(const std::string& socket_path,
                                                             Duration patience);

  // Whether this process can use the owner's memory: imports a chunk. Some sandboxes refuse what
  // the driver's attribute promises.
  absl::Status Try(const Device& device) const;
  // Returns the pool, which the owner makes now if no executor has asked before.
  absl::StatusOr<PoolDescription> Open() const;
  // Returns descriptors of `count` chunks from number `first` on. At most kMaxDescriptors.
  absl::StatusOr<std::vector<UniqueFd>> Fetch(std::uint64_t first, std::uint32_t count) const;
  // Takes `count` chunks, and returns their numbers. The chunks hold bytes of `domain`, or
  // nobody's; 0 is the domain of processes that nobody tells apart. ResourceExhausted if fewer are
  // free. An error takes none.
  absl::StatusOr<std::vector<std::uint32_t>> Take(std::uint64_t domain, std::size_t count) const;
  // Returns chunks that Take gave out. InvalidArgument, without any change to the refused part, for
  // chunks that this client does not have.
  absl::Status Return(std::span<const std::uint32_t> numbers) const;
  // The pool's free chunks, as of the owner's last answer: other executors take and return too.
  std::size_t free_chunks() const { return free_chunks_.load(std::memory_order_relaxed); }
  // Calls `ends` once the owner does not answer any more. Before other threads know the client.
  void WhenLost(std::function<void()> ends) { when_lost_ = std::move(ends); }
  // Lets the owner live on when torpord ends, until it has had no executor for `patience`.
  absl::Status Outlive(Duration patience) const;

  // The owner's process.
  pid_t process() const { return process_; }

 private:
  PoolClient(UniqueFd connection, pid_t process)
      : connection_(std::move(connection)), process_(process) {}

  // Asks, and takes the owner's errors and count of free chunks.
  absl::StatusOr<PoolReply> Request(const PoolRequest& request,
                                    std::vector<UniqueFd>* descriptors = nullptr) const;

  std::function<void()> when_lost_;
  mutable Mutex mutex_;
  const UniqueFd connection_ ABSL_GUARDED_BY(mutex_);
  mutable bool is_lost_ ABSL_GUARDED_BY(mutex_) = false;
  mutable std::atomic<std::size_t> free_chunks_ = 0;
  const pid_t process_;
};

}  // namespace torpor::executor
