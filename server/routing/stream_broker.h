#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "proto/torpor/v1/router.pb.h"
#include "server/broker/request_broker.h"
#include "server/routing/torpord_link.h"

namespace torpor::server {

// The RequestBroker of a router's process: asks torpord over a stream, and keeps its requests from
// one stream to the next. While no stream is there, requests that wait go on waiting, requests that
// run go on running, and what ends is told to the next torpord. Thread-safe; callbacks come on the
// caller's thread of the function that brings them.
class StreamBroker final : public RequestBroker {
 public:
  // `clock` must outlive the broker.
  explicit StreamBroker(const Clock& clock) : clock_(clock) {}

  RequestId Acquire(const Demand& demand, OnGrant on_grant, OnLost on_lost) override;
  void ConfirmLease(RequestId request, std::function<void()> done) override;
  void Save(RequestId request, std::function<void()> done) override;
  void AskAgain(RequestId request) override;
  void Release(RequestId request, scheduler::Ending ending) override;

  // --- The stream ---
  // torpord has welcomed the router: tells which requests are there, and sends to `link` from then
  // on.
  void Attach(std::shared_ptr<TorpordLink> link);
  void Detach();
  void OnMessage(const v1::TorpordMessage::Grant& grant);
  void OnMessage(const v1::TorpordMessage::Refusal& refusal);
  void OnMessage(const v1::TorpordMessage::Lost& lost);
  void OnMessage(const v1::TorpordMessage::Confirmed& confirmed);

  // Gives up, in place of a torpord that is away or silent, requests whose time is over and
  // confirmations that take longer than a second; not saves, whose caller knows how long they may
  // take. Call at least every second.
  void Expire();

 private:
  struct Request {
    enum class State { kWaiting, kRunning, kRefused };
    Demand demand;        // names the instance while it runs
    Duration patience{};  // until give_up, at first and whenever the request is asked again
    State state = State::kWaiting;
    LeaseId lease;         // while it runs
    bool is_lost = false;  // the lease, as on_lost was told
    OnGrant on_grant;
    OnLost on_lost;
    std::function<void()> on_confirmed;  // set while a confirmation is awaited
    bool saves = false;                  // the confirmation is Save's
    TimePoint confirm_by{};
  };

  // No effect on a request that is not there, or not in the state for it.
  void Refuse(std::uint64_t id, const absl::Status& status);
  void Lose(std::uint64_t id, LeaseId lease, const absl::Status& status);
  void Confirm(std::uint64_t id);
  void BeginConfirm(RequestId request, bool saves, TimePoint by, std::function<void()> done);
  void SendConfirm(std::uint64_t id, const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  Mutex mutex_;
  std::shared_ptr<TorpordLink> link_ ABSL_GUARDED_BY(mutex_);  // nullptr: torpord is away
  std::uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Request> requests_ ABSL_GUARDED_BY(mutex_);  // in order of arrival
  // Ends of requests with a lease that no torpord has been told.
  std::vector<v1::RouterMessage::Release> released_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::server
