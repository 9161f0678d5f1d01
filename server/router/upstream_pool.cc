#include "server/router/upstream_pool.h"

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

#include "server/router/await.h"

namespace torpor::server {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMaxIdle = 32;
// Servers close what is idle; uvicorn, the most hasty of the usual ones, after 5 s.
constexpr std::chrono::seconds kMaxIdleTime(4);

bool IsAlive(boost::beast::tcp_stream& stream) {
  char byte = 0;
  const ssize_t bytes =
      recv(stream.socket().native_handle(), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  // Bytes that nobody asked for are as bad as an end.
  return bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

UpstreamPool::UpstreamPool(asio::io_context& io, HostAndPort address)
    : io_(io), address_(std::move(address)) {}

std::unique_ptr<UpstreamConnection> UpstreamPool::TakeIdle() {
  const TimePoint oldest = SteadyClock().Now() - kMaxIdleTime;
  while (!idle_.empty() && idle_.front()->idle_since < oldest) idle_.pop_front();
  while (!idle_.empty()) {
    std::unique_ptr<UpstreamConnection> connection = std::move(idle_.back());
    idle_.pop_back();
    if (!IsAlive(connection->stream)) continue;
    connection->is_reused = true;
    return connection;
  }
  return nullptr;
}

std::unique_ptr<UpstreamConnection> UpstreamPool::MakeNew() {
  return std::make_unique<UpstreamConnection>(io_);
}

asio::awaitable<boost::system::error_code> UpstreamPool::Connect(UpstreamConnection& connection) {
  boost::system::error_code not_numeric;
  const auto numeric = asio::ip::make_address(address_.host, not_numeric);
  if (!not_numeric) {
    const asio::ip::tcp::endpoint endpoint(numeric, address_.port);
    const auto [error] = co_await connection.stream.async_connect(endpoint, kAwait);
    if (error) co_return error;
  } else {
    const auto [resolve_error, endpoints] = co_await connection.resolver.async_resolve(
        address_.host, std::to_string(address_.port), kAwait);
    if (resolve_error) co_return resolve_error;
    const auto [error, endpoint] = co_await connection.stream.async_connect(endpoints, kAwait);
    if (error) co_return error;
  }
  boost::system::error_code ignored;
  connection.stream.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  co_return boost::system::error_code();
}

asio::awaitable<bool> UpstreamPool::IsListening() {
  constexpr std::chrono::seconds kPatience(1);
  const std::unique_ptr<UpstreamConnection> connection = MakeNew();
  connection->stream.expires_after(kPatience);
  const boost::system::error_code error = co_await Connect(*connection);
  co_return !error;
}

void UpstreamPool::Put(std::unique_ptr<UpstreamConnection> connection) {
  connection->stream.expires_never();
  connection->idle_since = SteadyClock().Now();
  idle_.push_back(std::move(connection));
  if (idle_.size() > kMaxIdle) idle_.pop_front();
}

}  // namespace torpor::server
