#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace torpor::server {

// One HTTP message as it came over a socket; names of fields in lower case.
struct RawMessage {
  std::string first_line;
  std::multimap<std::string, std::string> fields;
  std::string body;

  std::string Field(const std::string& name) const {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string() : found->second;
  }
  int status() const { return std::stoi(first_line.substr(first_line.find(' ') + 1)); }
};

// A connected stream socket that speaks HTTP byte by byte; every call blocks.
class RawConnection {
 public:
  explicit RawConnection(UniqueFd socket) : socket_(std::move(socket)) {}
  // To "127.0.0.1:port".
  static RawConnection To(const std::string& address);

  // False where the other end has gone.
  bool Send(std::string_view text);
  // Nothing where the connection ends before the message does.
  std::optional<RawMessage> Read(bool has_body = true);
  std::optional<std::string> ReadChunks();
  // What comes until the end of the connection.
  std::string ReadToEnd();
  bool IsAtEnd();

  void Close() { socket_.Reset(); }
  void Shutdown();

 private:
  bool Fill();
  std::optional<std::string> ReadBytes(std::size_t bytes);
  std::optional<std::string> ReadLine();

  UniqueFd socket_;
  std::string buffer_;
};

// An HTTP server of a test: one thread a connection, whose handler answers as it likes.
class FakeUpstream {
 public:
  // False: the connection is closed after this request.
  using Handler = std::function<bool(RawConnection&, const RawMessage&)>;

  // With `reads_bodies` false the handler is called when the header has come. `port` 0: any.
  explicit FakeUpstream(Handler handler, bool reads_bodies = true, std::uint16_t port = 0);
  ~FakeUpstream();

  std::string address() const { return address_; }
  int connections();

 private:
  void Accept();

  const Handler handler_;
  const bool reads_bodies_;
  UniqueFd listener_;
  std::string address_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RawConnection>> connections_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

// An answer with Content-Length.
std::string Ok(std::string_view body);

}  // namespace torpor::server
