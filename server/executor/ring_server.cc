#include "server/executor/ring_server.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/status_macros.h"
#include "base/thread_name.h"
#include "server/unix_socket/unix_listener.h"

namespace torpor::executor {
namespace {

// Connections whose request has not come; a client sends the request at once.
constexpr std::size_t kMaxFresh = 64;
// Between two wake-ups of a session that must end, and two attempts to accept.
constexpr int kRetryMilliseconds = 10;

}  // namespace

absl::StatusOr<std::unique_ptr<RingServer>> RingServer::Start(const std::string& path, mode_t mode,
                                                              const Device& device,
                                                              SessionRegistry& registry) {
  TORPOR_ASSIGN_OR_RETURN(UniqueFd listener,
                          server::ListenOnUnixSocket(path, SOCK_SEQPACKET, mode));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return absl::ErrnoToStatus(errno, "cannot create an eventfd");
  return std::unique_ptr<RingServer>(
      new RingServer(std::move(listener), std::move(wake), device, registry));
}

RingServer::RingServer(UniqueFd listener, UniqueFd wake, const Device& device,
                       SessionRegistry& registry)
    : listener_(std::move(listener)),
      wake_(std::move(wake)),
      device_(device),
      registry_(registry),
      thread_([this] { Serve(); }) {}

RingServer::~RingServer() {
  Shutdown(Duration::zero());
  thread_.join();
}

void RingServer::Shutdown(Duration grace) {
  is_stopping_ = true;
  eventfd_write(wake_.get(), 1);
  has_stopped_.wait_for(grace);
}

void RingServer::Serve() {
  NameThread("ring-server");
  while (!is_stopping_) ServeOnce();
  fresh_.clear();
  std::move(sessions_.begin(), sessions_.end(), std::back_inserter(ending_));
  sessions_.clear();
  while (!ending_.empty()) ServeOnce();
  stopped_.set_value();
}

void RingServer::ServeOnce() {
  for (const auto& session : ending_) session->End();
  const bool accepts = !is_stopping_ && !std::exchange(cannot_accept_, false);
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0},
                                {accepts ? listener_.get() : -1, POLLIN, 0}};
  for (const UniqueFd& connection : fresh_) polled.push_back({connection.get(), POLLIN, 0});
  // What a client sends after the request is never read.
  for (const auto& session : sessions_) polled.push_back({session->connection(), POLLRDHUP, 0});
  const bool hurries = !accepts || !ending_.empty();
  if (poll(polled.data(), polled.size(), hurries ? kRetryMilliseconds : -1) < 0) return;  // EINTR
  eventfd_t wakes = 0;
  if (polled[0].revents != 0) eventfd_read(wake_.get(), &wakes);
  const std::size_t fresh = fresh_.size();
  for (std::size_t i = sessions_.size(); i-- > 0;) {
    if (polled[2 + fresh + i].revents == 0) continue;
    ending_.push_back(std::move(sessions_[i]));
    sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (std::size_t i = fresh; i-- > 0;) {
    if (polled[2 + i].revents == 0 || !TakeRequest(fresh_[i])) continue;
    fresh_.erase(fresh_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (polled[1].revents != 0) Accept();
  std::erase_if(ending_, [](const auto& session) { return session->is_finished(); });
}

void RingServer::Accept() {
  UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection) {
    cannot_accept_ = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
    return;
  }
  if (fresh_.size() >= kMaxFresh) fresh_.erase(fresh_.begin());
  fresh_.push_back(std::move(connection));
}

bool RingServer::TakeRequest(UniqueFd& connection) {
  wire::RingRequest request;
  const ssize_t received =
      recv(connection.get(), &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (received != static_cast<ssize_t>(sizeof request) || request.version != wire::kRingVersion) {
    return true;  // closes the connection
  }
  absl::StatusOr<std::unique_ptr<RingSession>> session =
      RingSession::Start(std::move(connection), request, device_, registry_,
                         [this] { eventfd_write(wake_.get(), 1); });
  if (!session.ok()) {
    spdlog::warn("no rings for session {}: {}", request.session_id, session.status().ToString());
    return true;
  }
  sessions_.push_back(*std::move(session));
  return true;
}

}  // namespace torpor::executor
