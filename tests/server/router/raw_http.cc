#include "tests/server/router/raw_http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"

namespace torpor::server {
namespace {

sockaddr_in Loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return static_cast<char>(tolower(c)); });
  return text;
}

}  // namespace

RawConnection RawConnection::To(const std::string& address) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in target =
      Loopback(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  TORPOR_CHECK(connect(socket.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) ==
               0);
  return RawConnection(std::move(socket));
}

bool RawConnection::Send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RawConnection::Fill() {
  char bytes[65536];
  const ssize_t received = recv(socket_.get(), bytes, sizeof bytes, 0);
  if (received <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(received));
  return true;
}

std::optional<std::string> RawConnection::ReadBytes(std::size_t bytes) {
  while (buffer_.size() < bytes) {
    if (!Fill()) return std::nullopt;
  }
  std::string taken = buffer_.substr(0, bytes);
  buffer_.erase(0, bytes);
  return taken;
}

std::optional<std::string> RawConnection::ReadLine() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!Fill()) return std::nullopt;
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

std::optional<std::string> RawConnection::ReadChunks() {
  std::string body;
  for (;;) {
    const auto size_line = ReadLine();
    if (!size_line) return std::nullopt;
    const std::size_t size = std::stoul(*size_line, nullptr, 16);
    const auto chunk = ReadBytes(size + 2);
    if (!chunk) return std::nullopt;
    if (size == 0) return body;
    body.append(*chunk, 0, size);
  }
}

std::optional<RawMessage> RawConnection::Read(bool has_body) {
  RawMessage message;
  const auto first_line = ReadLine();
  if (!first_line) return std::nullopt;
  message.first_line = *first_line;
  for (;;) {
    const auto line = ReadLine();
    if (!line) return std::nullopt;
    if (line->empty()) break;
    const std::size_t colon = line->find(':');
    std::string value = line->substr(colon + 1);
    value.erase(0, value.find_first_not_of(' '));
    message.fields.emplace(Lower(line->substr(0, colon)), value);
  }
  if (!has_body) return message;
  std::optional<std::string> body = std::string();
  if (message.Field("transfer-encoding") == "chunked") {
    body = ReadChunks();
  } else if (!message.Field("content-length").empty()) {
    body = ReadBytes(std::stoul(message.Field("content-length")));
  }
  if (!body) return std::nullopt;
  message.body = *std::move(body);
  return message;
}

std::string RawConnection::ReadToEnd() {
  while (Fill()) {
  }
  return std::move(buffer_);
}

bool RawConnection::IsAtEnd() { return buffer_.empty() && !Fill(); }

void RawConnection::Shutdown() { shutdown(socket_.get(), SHUT_RDWR); }

FakeUpstream::FakeUpstream(Handler handler, bool reads_bodies, std::uint16_t port)
    : handler_(std::move(handler)), reads_bodies_(reads_bodies) {
  listener_.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // A test may hold the port for its configuration.
  const int on = 1;
  TORPOR_CHECK(setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  sockaddr_in address = Loopback(port);
  socklen_t length = sizeof address;
  TORPOR_CHECK(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  TORPOR_CHECK(listen(listener_.get(), 16) == 0);
  TORPOR_CHECK(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  acceptor_ = std::thread([this] { Accept(); });
}

FakeUpstream::~FakeUpstream() {
  shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  for (const auto& connection : connections_) connection->Shutdown();
  for (std::thread& thread : threads_) thread.join();
}

int FakeUpstream::connections() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(connections_.size());
}

void FakeUpstream::Accept() {
  for (;;) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) return;
    const std::lock_guard lock(mutex_);
    connections_.push_back(std::make_unique<RawConnection>(std::move(socket)));
    threads_.emplace_back([this, connection = connections_.back().get()] {
      while (const auto request = connection->Read(reads_bodies_)) {
        if (!handler_(*connection, *request)) break;
      }
      connection->Shutdown();
    });
  }
}

std::string Ok(std::string_view body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

}  // namespace torpor::server
