#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "proto/wire/batch.h"
#include "proto/wire/byte_ring.h"
#include "proto/wire/record_reader.h"
#include "proto/wire/ring_file.h"
#include "tests/server/executor/session/batch_builder.h"

namespace torpor::executor {

// A session's rings, as a client has them that may also write what no client should.
class RingClient {
 public:
  // Connects to the ring socket at `path` and presents the session.
  RingClient(const std::string& path, std::uint64_t session,
             const std::array<std::uint8_t, 16>& key);

  // errno of the refusal; 0: the rings are there.
  int error() const { return error_; }

  // Sends a batch that wants one reply, and waits for the reply; nothing if the stream ended.
  std::optional<wire::Reply> Call(const BatchBuilder& batch, std::uint64_t lease);
  // Writes as much as fits, and wakes the executor; returns the number of bytes.
  std::size_t Write(std::span<const std::uint8_t> bytes);
  static std::vector<std::uint8_t> Record(const std::vector<std::uint8_t>& frame);
  // Sleeps until a reply has come or the stream has ended.
  std::optional<wire::Reply> Receive();
  // Waits until the executor closes the connection; its reason.
  std::string AwaitEnd() const;
  // Waits until the executor's thread sleeps for a record.
  void AwaitSleep();
  // As the end of the process would.
  void Disconnect() { connection_.Reset(); }

  wire::RingPage& page() const { return file_->page(); }
  const UniqueFd& connection() const { return connection_; }

 private:
  UniqueFd connection_;
  int error_ = 0;
  std::unique_ptr<wire::RingFile> file_;
  std::optional<wire::RingWriter> requests_;
  std::optional<wire::RecordReader> replies_;
};

}  // namespace torpor::executor
