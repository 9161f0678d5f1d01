#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client_shim/core/session.h"
#include "client_shim/core/unix_socket.h"

namespace torpor::shim {
namespace {

timespec ToTimespec(std::chrono::nanoseconds span) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(span);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((span - seconds).count())};
}

}  // namespace

void Session::Wake() const {
  const std::uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof one) < 0) {
    // EAGAIN: the thread has been woken often enough.
  }
}

// Links with output to get rid of, or with replies that only the session itself waits for. An
// idle link is not watched: it would wake this thread at every reply that another thread reads.
std::vector<Session::Watched> Session::LinksToWatch() const {
  std::vector<Watched> watched;
  for (const auto& [key, link] : links_) {
    short events = 0;
    if (link->stream.socket_is_full()) events |= POLLOUT;
    const bool output_waits = link->stream.unsent_bytes() > 0;
    if (!link->is_being_read && !link->HasWaiter() && (output_waits || !link->pending.empty()))
      events |= POLLIN;
    if (events != 0) watched.push_back({link, events});
  }
  return watched;
}

// When OnTimers has something to do next; false: never.
bool Session::NextWake(Time now, Time& wake) {
  wake = Time::max();
  timer_is_armed_ = !batch_.empty();
  if (timer_is_armed_) wake = batch_since_ + settings_.flush_after;
  const bool lease_may_idle = !lease_.is_explicit && (lease_.state == LeaseState::kHeld ||
                                                      lease_.state == LeaseState::kLost);
  if (lease_may_idle) {
    if (next_idle_check_ <= now - settings_.lease_idle) next_idle_check_ = now;
    wake = std::min(wake, next_idle_check_);
  }
  return wake != Time::max();
}

void Session::OnTimers(Time now) {
  if (!batch_.empty() && now >= batch_since_ + settings_.flush_after) FlushBatch();
  if (lease_.is_explicit || now < next_idle_check_) return;
  next_idle_check_ = now + settings_.lease_idle;
  if (lease_.state == LeaseState::kLost && !lease_.daemon_knows) {
    // Our connection broke and the daemon has nothing to say about it.
    lease_.daemon_knows = true;
    SendControl(wire::LeaseReturned{lease_.id});
    return SettleLostLease();
  }
  if (lease_.state != LeaseState::kHeld) return;
  if (uses_ == uses_at_check_ && batch_.empty() && lease_.link->pending.empty())
    return BeginReturn();
  uses_at_check_ = uses_;
}

void Session::Serve() {
  Lock lock(mutex_);
  while (!stopping_) {
    // A send may have found out, and a closed socket is not polled.
    if (control_->closed()) LoseDaemon(control_->why_closed());
    const std::vector<Watched> links = LinksToWatch();
    std::vector<pollfd> fds;
    fds.push_back({wake_.get(), POLLIN, 0});
    const bool has_daemon = !control_->closed();
    if (has_daemon) {
      const short out = control_->socket_is_full() ? POLLOUT : 0;
      fds.push_back({control_->fd(), static_cast<short>(POLLIN | out), 0});
    }
    for (const Watched& watched : links)
      fds.push_back({watched.link->stream.fd(), watched.events, 0});
    const Time now = std::chrono::steady_clock::now();
    Time wake;
    const bool has_timer = NextWake(now, wake);
    const timespec span = ToTimespec(std::max(wake - now, Time::duration::zero()));
    lock.unlock();
    const int ready = ppoll(fds.data(), fds.size(), has_timer ? &span : nullptr, nullptr);
    lock.lock();
    if (stopping_) return;
    if (ready > 0 && fds[0].revents != 0) {
      std::uint64_t count = 0;
      if (read(wake_.get(), &count, sizeof count) < 0) count = 0;
    }
    if (ready > 0 && has_daemon && fds[1].revents != 0) ReadControl(lock);
    for (std::size_t i = 0; ready > 0 && i < links.size(); ++i) {
      const pollfd& fd = fds[fds.size() - links.size() + i];
      const LinkPtr& link = links[i].link;
      if (fd.revents == 0 || link->stream.closed()) continue;
      if ((fd.revents & POLLOUT) != 0) {
        PumpLink(link);
        room_.notify_all();
      }
      if ((fd.revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !link->is_being_read) {
        ReadLink(lock, link, /*wait=*/false);
        HandOverReading(link);
      }
    }
    OnTimers(std::chrono::steady_clock::now());
  }
}

void Session::ReadControl(Lock& lock) {
  std::uint8_t buffer[16 * 1024];
  control_->Write();
  const ssize_t got = Receive(control_->fd(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (got > 0) control_->Feed({buffer, static_cast<std::size_t>(got)});
  if (got == 0 || got == -2) control_->FeedEnd("it closed the connection");
  std::span<const std::uint8_t> payload;
  // Also after the sticky error: threads may wait for what they asked before it came.
  while (!lost_daemon_ && control_->Next(payload)) OnControl(lock, payload);
  if (control_->closed()) LoseDaemon(control_->why_closed());
}

void Session::OnControl(Lock& lock, std::span<const std::uint8_t> payload) {
  wire::ServerMessage message;
  if (!wire::DecodeMessage(payload, message)) return LoseDaemon("it sent a malformed message");
  if (const auto* grant = std::get_if<wire::LeaseGrant>(&message)) return OnGrant(lock, *grant);
  if (const auto* revoke = std::get_if<wire::LeaseRevoke>(&message)) return OnRevoke(*revoke);
  if (const auto* lost = std::get_if<wire::LeaseLost>(&message)) return OnLost(lock, *lost);
  if (const auto* memory = std::get_if<wire::MemoryReply>(&message))
    return OnMemoryAnswer(memory->request_id, std::move(message));
  if (const auto* info = std::get_if<wire::MemGetInfoReply>(&message))
    return OnMemoryAnswer(info->request_id, std::move(message));
  if (const auto* shared = std::get_if<wire::ShareMemoryReply>(&message))
    return OnMemoryAnswer(shared->request_id, std::move(message));
  if (const auto* opened = std::get_if<wire::OpenMemoryReply>(&message))
    return OnMemoryAnswer(opened->request_id, std::move(message));
  LoseDaemon("it opened the session twice");
}

// Without its daemon the session has no memory, no lease and no way to another.
void Session::LoseDaemon(const std::string& why) {
  if (lost_daemon_) return;
  lost_daemon_ = true;
  log_.Warn("the Torpor daemon at " + settings_.socket + " is lost: " + why +
            "; every further CUDA call fails");
  cudaError_t none = cudaSuccess;
  fatal_.compare_exchange_strong(none, cudaErrorDevicesUnavailable);
  control_->FeedEnd(why);
  shutdown(control_->fd(), SHUT_RDWR);
  while (!links_.empty())
    BreakLink(LinkPtr(links_.begin()->second), cudaErrorDevicesUnavailable, "the daemon is lost");
  for (const auto& [id, waiter] : control_waiters_) {
    waiter->error = cudaErrorDevicesUnavailable;
    waiter->done = true;
    waiter->changed.notify_one();
  }
  control_waiters_.clear();
  lease_changed_.notify_all();
  room_.notify_all();
}

}  // namespace torpor::shim
