#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "server/executor/image/chunk_ledger.h"
#include "server/executor/image/holder_process.h"
#include "server/executor/image/pool_socket.h"

namespace torpor::executor {

// Lends the chunks of a pool to the executors at the owner's connections. A chunk is one
// connection's until returned, or until the connection's process has ended: as long as the process
// lives, work that it has enqueued may write to the chunk, whatever has become of the connection.
// Not thread-safe.
class ChunkLender {
 public:
  using Number = ChunkLedger::Number;
  // Fills the chunks with zeros, all or as far as possible: after an error they count as holding
  // their former bytes.
  using Clear = std::function<absl::Status(std::span<const Number> chunks)>;

  ChunkLender(std::size_t chunks, WatchProcess watch, Clear clear)
      : ledger_(chunks), watch_(std::move(watch)), clear_(std::move(clear)) {}

  // Carries out kTake: `reply` gets the numbers of chunks that are clean for the domain.
  // ResourceExhausted if fewer than needed are free, InvalidArgument for a wrong count. An error
  // changes nothing.
  absl::Status Take(int connection, const PoolRequest& request, PoolReply& reply);
  // Carries out kReturn. InvalidArgument, without any change, unless the connection holds each
  // chunk and no number comes twice.
  absl::Status Return(int connection, const PoolRequest& request);
  // The connection ends; its number may be another's next.
  void OnClosing(int connection);

  // Looks first whether processes of closed connections have ended.
  std::size_t free_chunks();

 private:
  struct Holder {
    ChunkLedger::Holder id = 0;
    UniqueFd process;  // readable once ended
  };

  absl::Status Meet(int connection);
  void TakeBackFromDeparted();
  void TakeBackFromAllEnded();

  ChunkLedger ledger_;
  const WatchProcess watch_;
  const Clear clear_;
  std::map<int, Holder> holders_;  // by connection, as soon as one takes something
  std::vector<Holder> departed_;   // have chunks, and no connection any more
  ChunkLedger::Holder last_id_ = 0;
};

}  // namespace torpor::executor
