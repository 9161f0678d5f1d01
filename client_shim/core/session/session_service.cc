#include "client_shim/core/session/session_service.h"

#include <chrono>
#include <utility>

namespace torpor::shim {
namespace {

std::string Seconds(std::chrono::milliseconds span) {
  std::string whole = std::to_string(span / std::chrono::seconds(1));
  const std::string thousandths = std::to_string(span.count() % 1000);
  if (thousandths == "0") return whole;
  return whole + "." + std::string(3 - thousandths.size(), '0') + thousandths;
}

}  // namespace

SessionService::SessionService(DaemonConnection& daemon, CommandChannel& channel,
                               SessionHealth& health, const Log& log, ReconnectOptions reconnect)
    : daemon_(daemon),
      channel_(channel),
      health_(health),
      log_(log),
      reconnect_(std::move(reconnect)) {}

std::optional<ServiceThread::Time> SessionService::Prepare(std::vector<pollfd>& fds) {
  // A send may have found the connection closed; a closed socket is not polled.
  if (std::string why; !reconnection_ && daemon_.IsClosed(why)) OnDaemonEnd(why);
  std::optional<ServiceThread::Time> next;
  if (reconnection_) {
    next = reconnection_->NextTimer();
    if (reconnection_->fd() >= 0)
      fds.push_back({reconnection_->fd(), reconnection_->EventsToWatch(), 0});
  } else if (has_daemon_) {
    fds.push_back({daemon_.fd(), daemon_.EventsToWatch(), 0});
  }
  links_.clear();
  const std::optional<ServiceThread::Time> of_channel = channel_.Watch(links_);
  if (of_channel && (!next || *of_channel < *next)) next = of_channel;
  for (const CommandChannel::Watched& watched : links_)
    fds.push_back({watched.link->fd(), watched.events, 0});
  return next;
}

void SessionService::OnReady(std::span<const pollfd> fds) {
  const std::span<const pollfd> of_links = fds.last(links_.size());
  ServeDaemon(/*has_events=*/fds.size() > links_.size() && fds.front().revents != 0);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const short events = links_[i].is_ready ? links_[i].events : of_links[i].revents;
    if (events != 0) channel_.OnReady(links_[i].link, events);
  }
  channel_.OnTimers();
}

void SessionService::ServeDaemon(bool has_events) {
  if (reconnection_) return Reconnect();
  if (!has_events) return;
  daemon_.Transfer();
  TakeMessages();
}

void SessionService::TakeMessages() {
  // Messages count after a sticky error too: threads may wait for earlier requests.
  wire::ServerMessage message;
  while (has_daemon_) {
    const DaemonConnection::Step step = daemon_.Next(message);
    if (step == DaemonConnection::Step::kNothing) break;
    if (step == DaemonConnection::Step::kMalformed)
      return LoseDaemon(cudaErrorDevicesUnavailable, "it sent a malformed message");
    OnMessage(std::move(message));
  }
  if (std::string why; daemon_.IsClosed(why)) OnDaemonEnd(why);
}

void SessionService::OnMessage(wire::ServerMessage message) {
  constexpr cudaError_t kBreach = cudaErrorDevicesUnavailable;
  if (const auto* grant = std::get_if<wire::LeaseGrant>(&message)) {
    if (!channel_.OnGrant(*grant)) LoseDaemon(kBreach, "a lease was granted while another is held");
  } else if (const auto* revoke = std::get_if<wire::LeaseRevoke>(&message)) {
    channel_.OnRevoke(*revoke);
  } else if (const auto* lost = std::get_if<wire::LeaseLost>(&message)) {
    was_told_an_end_ = was_told_an_end_ || lost->sticky;
    channel_.OnLost(*lost);
  } else if (const auto* saved = std::get_if<wire::MemorySaved>(&message)) {
    channel_.OnSaved(*saved);
  } else if (const auto* save = std::get_if<wire::SaveMemory>(&message)) {
    channel_.OnSaveMemory(*save);
  } else if (std::holds_alternative<wire::HelloReply>(message) ||
             std::holds_alternative<wire::ResumeReply>(message) ||
             std::holds_alternative<wire::InquiryReply>(message)) {
    LoseDaemon(kBreach, "it opened the session twice");
  } else if (!daemon_.Answer(std::move(message))) {
    LoseDaemon(kBreach, "it sent an unexpected answer");
  }
}

// Without a torpord the session gets no lease, and requests about memory wait. An executor that
// lives on serves the present lease until the next torpord comes.
void SessionService::OnDaemonEnd(const std::string& why) {
  if (!has_daemon_) return;
  if (was_told_an_end_ || reconnect_.patience.count() == 0)
    return LoseDaemon(cudaErrorDevicesUnavailable, why);
  Tell("torpord is gone; waiting " + Seconds(reconnect_.patience) + " s for the next: " + why);
  gone_since_ = std::chrono::steady_clock::now();
  daemon_.Suspend();
  channel_.OnDaemonGone();
  reconnection_.emplace(reconnect_, gone_since_);
}

void SessionService::Reconnect() {
  switch (reconnection_->Advance(std::chrono::steady_clock::now())) {
    case Reconnection::State::kTrying:
      return;
    case Reconnection::State::kResumed:
      return GoOn();
    case Reconnection::State::kRefused:
    case Reconnection::State::kGivenUp:
      LoseDaemon(reconnection_->error(), reconnection_->why());
      reconnection_.reset();
  }
}

void SessionService::GoOn() {
  const std::chrono::nanoseconds away = std::chrono::steady_clock::now() - gone_since_;
  Tell("torpord is back after " + std::to_string(away / std::chrono::milliseconds(1)) + " ms");
  const wire::ResumeReply reply = reconnection_->reply();
  daemon_.Resume(reconnection_->TakeStream());
  reconnection_.reset();
  channel_.OnResumed(reply);
  // More may have arrived together with the reply.
  TakeMessages();
}

void SessionService::Tell(const std::string& message) const {
  if (reconnect_.is_told)
    log_.Warn(message);
  else
    log_.Debug(message);
}

// Without its daemon the session has no memory, no lease and no way to get either.
void SessionService::LoseDaemon(cudaError_t error, const std::string& why) {
  if (!std::exchange(has_daemon_, false)) return;
  log_.Warn("the Torpor daemon at " + reconnect_.socket + " is lost: " + why +
            "; every further CUDA call fails");
  health_.SetStickyIfHealthy(error);
  daemon_.Close(why);
  channel_.OnDaemonLost();
}

}  // namespace torpor::shim
