#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
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

// An executor's connection to the owner of its GPU's memory (PoolOwner). Thread-safe.
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
  // Lets the owner live on when torpord ends, until it has had no executor for `patience`.
  absl::Status Outlive(Duration patience) const;

  // The owner's process.
  pid_t process() const { return process_; }

 private:
  PoolClient(UniqueFd connection, pid_t process)
      : connection_(std::move(connection)), process_(process) {}

  // Asks, and takes the owner's errors.
  absl::StatusOr<PoolReply> Request(const PoolRequest& request,
                                    std::vector<UniqueFd>* descriptors = nullptr) const;

  mutable Mutex mutex_;
  const UniqueFd connection_ ABSL_GUARDED_BY(mutex_);
  const pid_t process_;
};

}  // namespace torpor::executor
