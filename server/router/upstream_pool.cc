#include "server/router/upstream_pool.h"

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

#include "server/router/await.h"

namespace torpor::server {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

constexpr std::size_t kMaxIdle = 32;
// Servers close idle connections; uvicorn, the fastest of the usual servers, after 5 s.
constexpr std::chrono::seconds kMaxIdleTime(4);
// A restarted container may have another address.
constexpr std::chrono::seconds kResolvedFor(5);

bool IsAlive(boost::beast::tcp_stream& stream) {
  char byte = 0;
  const ssize_t bytes =
      recv(stream.socket().native_handle(), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  // Unexpected bytes are as bad as an end of file.
  return bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

UpstreamPool::UpstreamPool(asio::io_context& io, HostAndPort address)
    : io_(io), address_(std::move(address)), resolver_(io), expiry_(io) {}

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

asio::awaitable<boost::system::error_code> UpstreamPool::Resolve() {
  if (!endpoints_.empty() && SteadyClock().Now() - resolved_at_ < kResolvedFor)
    co_return ErrorCode();
  ErrorCode not_numeric;
  const auto numeric = asio::ip::make_address(address_.host, not_numeric);
  if (!not_numeric) {
    endpoints_ = {asio::ip::tcp::endpoint(numeric, address_.port)};
    resolved_at_ = TimePoint::max();
    co_return ErrorCode();
  }
  const auto [error, found] =
      co_await resolver_.async_resolve(address_.host, std::to_string(address_.port), kAwait);
  if (error) co_return error;
  endpoints_.assign(found.begin(), found.end());
  resolved_at_ = SteadyClock().Now();
  co_return ErrorCode();
}

asio::awaitable<boost::system::error_code> UpstreamPool::Connect(UpstreamConnection& connection) {
  const auto [error, endpoint] = co_await connection.stream.async_connect(endpoints_, kAwait);
  if (error) {
    resolved_at_ = TimePoint();  // the server may have moved
    co_return error;
  }
  ErrorCode ignored;
  connection.stream.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  co_return ErrorCode();
}

asio::awaitable<bool> UpstreamPool::IsListening() {
  constexpr std::chrono::seconds kPatience(1);
  if (co_await Resolve()) co_return false;
  const std::unique_ptr<UpstreamConnection> connection = MakeNew();
  connection->stream.expires_after(kPatience);
  const ErrorCode error = co_await Connect(*connection);
  co_return !error;
}

void UpstreamPool::Put(std::unique_ptr<UpstreamConnection> connection) {
  connection->stream.expires_never();
  connection->idle_since = SteadyClock().Now();
  idle_.push_back(std::move(connection));
  if (idle_.size() > kMaxIdle) idle_.pop_front();
  if (!is_expiry_awaited_) CloseOld();
}

void UpstreamPool::CloseIdle() {
  idle_.clear();
  expiry_.cancel();
  is_expiry_awaited_ = false;
}

void UpstreamPool::CloseOld() {
  const TimePoint oldest = SteadyClock().Now() - kMaxIdleTime;
  while (!idle_.empty() && idle_.front()->idle_since <= oldest) idle_.pop_front();
  is_expiry_awaited_ = !idle_.empty();
  if (!is_expiry_awaited_) return;
  expiry_.expires_at(idle_.front()->idle_since + kMaxIdleTime);
  // The time may be over already when the pool goes.
  expiry_.async_wait([weak = weak_from_this()](ErrorCode cancelled) {
    const auto pool = weak.lock();
    if (pool && !cancelled) pool->CloseOld();
  });
}

}  // namespace torpor::server
