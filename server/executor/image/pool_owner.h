#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/chunk_cleaner.h"
#include "server/executor/image/chunk_lender.h"
#include "server/executor/image/holder_process.h"
#include "server/executor/image/physical_pool.h"
#include "server/executor/image/pool_socket.h"

namespace torpor::executor {

// Owns a GPU's memory for images, for executors that come and go: whatever a function's kernel does
// to an executor's context, the chunks stay. Lends each chunk to one executor at a time
// (ChunkLender), and clears chunks that change from one domain to another (ChunkCleaner): nothing
// else runs on the GPU here.
class PoolOwner {
 public:
  struct Options {
    Bytes pool_bytes = 0;      // 0: all that may be had
    Bytes chunk_bytes = 0;     // a multiple of the driver's granularity
    Bytes driver_reserve = 0;  // 0: by the GPU's size
    int contexts = 2;  // executors at a time, spares included, that the pool leaves room for
  };

  // Call before the GPU's executor starts: what the executor takes is measured from now on.
  // `device` must outlive the owner. Chunks of a process are free again when `watch` tells its end.
  static absl::StatusOr<std::unique_ptr<PoolOwner>> Create(const Device& device,
                                                           const Options& options,
                                                           WatchProcess watch = OpenHolderProcess);

  // Answers executors until no one has been connected for as long as told, if it was told to live
  // on when torpord ends. `listener` takes connections of torpord's user only.
  void Serve(UniqueFd listener);

 private:
  PoolOwner(const Device& device, const Options& options, Bytes free_alone, WatchProcess watch)
      : device_(device), options_(options), free_alone_(free_alone), watch_(std::move(watch)) {}

  // Returns what all executors after the first will take beside the pool, as much as the first
  // each; `free` is what that one has left.
  Bytes RoomForOthers(Bytes free) const;
  bool Answer(int connection, const PoolRequest& request);
  // Fills in the reply, and returns the reply's descriptors, which stay the owner's.
  absl::StatusOr<std::vector<int>> Carry(int connection, const PoolRequest& request,
                                         PoolReply& reply);
  absl::StatusOr<std::vector<int>> Lend(int connection, const PoolRequest& request,
                                        PoolReply& reply);
  absl::StatusOr<std::vector<int>> ExportSample();
  absl::Status Open();
  absl::StatusOr<std::vector<int>> Export(std::uint64_t first, std::uint32_t count);
  void Outlive(Duration patience);

  const Device& device_;
  const Options options_;
  const Bytes free_alone_;  // before any executor took memory
  UniqueFd sample_;         // of a chunk like the pool's, until the pool is open
  const WatchProcess watch_;
  std::unique_ptr<PhysicalPool> pool_;  // with what follows, once open
  std::optional<ChunkCleaner> cleaner_;
  std::optional<ChunkLender> lender_;
  PoolDescription description_;
  // By number, once exported: a driver takes 20 times as long to export a chunk as to import it,
  // and executors import all.
  std::vector<UniqueFd> exported_;
  std::optional<Duration> patience_;  // without executors, once torpord may end
};

}  // namespace torpor::executor
