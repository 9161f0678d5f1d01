#include "client_shim/core/session/session_service.h"

#include <utility>

namespace torpor::shim {

SessionService::SessionService(DaemonConnection& daemon, CommandChannel& channel,
                               SessionHealth& health, const Log& log, std::string socket)
    : daemon_(daemon), channel_(channel), health_(health), log_(log), socket_(std::move(socket)) {}

std::optional<ServiceThread::Time> SessionService::Prepare(std::vector<pollfd>& fds) {
  // A send may have found the connection closed; a closed socket is not polled.
  if (std::string why; daemon_.IsClosed(why)) LoseDaemon(why);
  if (has_daemon_) fds.push_back({daemon_.fd(), daemon_.EventsToWatch(), 0});
  links_.clear();
  const std::optional<ServiceThread::Time> next = channel_.Watch(links_);
  for (const CommandChannel::Watched& watched : links_)
    fds.push_back({watched.link->fd(), watched.events, 0});
  return next;
}

void SessionService::OnReady(std::span<const pollfd> fds) {
  const std::span<const pollfd> of_links = fds.last(links_.size());
  if (fds.size() > links_.size() && fds.front().revents != 0) ReadDaemon();
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const short events = links_[i].is_ready ? links_[i].events : of_links[i].revents;
    if (events != 0) channel_.OnReady(links_[i].link, events);
  }
  channel_.OnTimers();
}

void SessionService::ReadDaemon() {
  daemon_.Transfer();
  // Messages count after a sticky error too: threads may wait for earlier requests.
  wire::ServerMessage message;
  while (has_daemon_) {
    const DaemonConnection::Step step = daemon_.Next(message);
    if (step == DaemonConnection::Step::kNothing) break;
    if (step == DaemonConnection::Step::kMalformed)
      return LoseDaemon("it sent a malformed message");
    OnMessage(std::move(message));
  }
  if (std::string why; daemon_.IsClosed(why)) LoseDaemon(why);
}

void SessionService::OnMessage(wire::ServerMessage message) {
  if (const auto* grant = std::get_if<wire::LeaseGrant>(&message)) {
    if (!channel_.OnGrant(*grant)) LoseDaemon("a lease was granted while another is held");
  } else if (const auto* revoke = std::get_if<wire::LeaseRevoke>(&message)) {
    channel_.OnRevoke(*revoke);
  } else if (const auto* lost = std::get_if<wire::LeaseLost>(&message)) {
    channel_.OnLost(*lost);
  } else if (const auto* saved = std::get_if<wire::MemorySaved>(&message)) {
    channel_.OnSaved(*saved);
  } else if (std::holds_alternative<wire::HelloReply>(message) ||
             std::holds_alternative<wire::InquiryReply>(message)) {
    LoseDaemon("it opened the session twice");
  } else if (!daemon_.Answer(std::move(message))) {
    LoseDaemon("it sent an unexpected answer");
  }
}

// Without its daemon the session has no memory, no lease and no way to get either.
void SessionService::LoseDaemon(const std::string& why) {
  if (!std::exchange(has_daemon_, false)) return;
  log_.Warn("the Torpor daemon at " + socket_ + " is lost: " + why +
            "; every further CUDA call fails");
  health_.SetStickyIfHealthy(cudaErrorDevicesUnavailable);
  daemon_.Close(why);
  channel_.OnDaemonLost();
}

}  // namespace torpor::shim
