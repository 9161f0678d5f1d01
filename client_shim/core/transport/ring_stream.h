#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "client_shim/core/transport/frame_stream.h"
#include "client_shim/core/transport/ring_connection.h"
#include "proto/wire/byte_ring.h"
#include "proto/wire/doorbell.h"
#include "proto/wire/record_reader.h"

namespace torpor::shim {

// Frames over rings in memory shared with the executor (proto/wire/ring_memory.h). The executor's
// end shows on the connection, which the service thread polls.
class RingStream final : public FrameStream {
 public:
  explicit RingStream(RingConnection connection);
  ~RingStream() override;

  bool is_introduced() const override { return true; }
  void Send(std::vector<std::uint8_t>& frame) override;
  void Write() override;
  std::size_t unsent_bytes() const override { return queued_bytes_; }
  bool awaits_service() const override { return false; }
  Arrival Await(bool waits) override;
  void Take(Arrival arrival) override;
  bool Next(std::span<const std::uint8_t>& payload) override;
  void End(const std::string& why) override;
  bool closed() const override { return closed_; }
  const std::string& why_closed() const override { return why_closed_; }
  int fd() const override { return connection_.socket.get(); }
  Polled Prepare(bool reads) override;
  bool OnEvents(short events) override;

 private:
  struct Queued {
    std::vector<std::uint8_t> bytes;
    std::size_t at = 0;
  };

  wire::RingPage& page() const { return connection_.file->page(); }
  void MoveQueue();
  void HangUp();
  void Close(const std::string& why);

  const RingConnection connection_;
  wire::RingWriter requests_;
  bool has_published_ = false;          // since the executor was last woken
  std::atomic<bool> has_woken_{false};  // the executor, since the last Await
  std::deque<Queued> queue_;
  std::size_t queued_bytes_ = 0;

  wire::RecordReader replies_;
  wire::AdaptiveSpin spin_;           // of the thread in Await
  std::atomic<bool> hung_up_{false};  // nothing comes beyond what the ring holds
  std::string last_words_;
  bool closed_ = false;
  std::string why_closed_;
};

}  // namespace torpor::shim
