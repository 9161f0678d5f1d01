#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/router/body_spool.h"

namespace torpor::server {

// The body of one request: the first bytes in memory, the rest in a file. Takes room of the spool
// as the body grows. Used on the router's thread; one Append or Read at a time.
class SpooledBody {
 public:
  // Maximum bytes of a piece that is appended, of which many requests have one at a time; and of a
  // piece that is read, which only requests with a GPU do.
  static constexpr std::size_t kPieceBytes = std::size_t{64} * 1024;
  static constexpr std::size_t kReadBytes = std::size_t{256} * 1024;

  // `max_memory`: bytes that may be in memory. The spool must outlive the body.
  SpooledBody(BodySpool& spool, Bytes max_memory) : spool_(spool), max_memory_(max_memory) {}
  // Gives the room back.
  ~SpooledBody() { Clear(); }
  SpooledBody(const SpooledBody&) = delete;
  SpooledBody& operator=(const SpooledBody&) = delete;

  // Bytes of the next piece by which memory is used best, 1 to kPieceBytes.
  std::size_t NextPieceBytes() const;
  // Adds a piece, in memory as long as there is room, and from then on in the file.
  // ResourceExhausted beyond spool_limit, Unavailable if the disk fails; only Clear is allowed
  // then.
  boost::asio::awaitable<absl::Status> Append(std::string piece);
  // Makes `piece` the bytes from `offset` on, at least one unless the body ends there, at most
  // kReadBytes. Unavailable if the disk fails.
  boost::asio::awaitable<absl::Status> Read(std::uint64_t offset, std::string& piece);
  // Empties the body and gives the room back. Not while Append or Read runs.
  void Clear();

  std::uint64_t size() const { return size_; }

 private:
  // A piece in memory.
  struct Held {
    std::uint64_t begin = 0;
    std::string bytes;
  };

  bool Hold(std::string& piece);
  void ReadHeld(std::uint64_t offset, std::string& piece) const;
  boost::asio::awaitable<absl::Status> Write(std::string piece);
  boost::asio::awaitable<absl::Status> ReadFile(std::uint64_t offset, std::string& piece);

  BodySpool& spool_;
  const Bytes max_memory_;
  std::vector<Held> held_;
  std::uint64_t held_bytes_ = 0;
  std::shared_ptr<SpoolFile> file_;  // from the first piece that found no memory
  std::uint64_t size_ = 0;
  BodyBytes taken_;
};

}  // namespace torpor::server
