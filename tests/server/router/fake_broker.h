#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "server/broker/request_broker.h"

namespace torpor::server {

// A broker that grants at once, or as the test says.
class FakeBroker final : public RequestBroker {
 public:
  // What Acquire answers right away; nothing: the test calls Answer.
  std::function<absl::StatusOr<RequestGrant>(const std::string&)> answer =
      [this](const std::string&) { return SomeGrant(); };
  // What AskAgain answers; nothing: the same.
  std::function<absl::StatusOr<RequestGrant>()> answer_again;
  // Of the instance that is granted.
  std::string upstream;

  RequestGrant SomeGrant() const {
    RequestGrant grant;
    grant.upstream = upstream;
    grant.gpu = GpuIndex{1};
    grant.source = SwapSource::kHost;
    grant.queue = std::chrono::microseconds(1500);
    grant.swap = std::chrono::microseconds(2500);
    return grant;
  }

  RequestId Acquire(const Demand& demand, OnGrant on_grant, OnLost on_lost) override {
    RequestId id;
    {
      const std::lock_guard lock(mutex_);
      id = RequestId{++acquired_};
      demands_[id.value] = demand;
      on_grant_[id.value] = on_grant;
      on_lost_[id.value] = std::move(on_lost);
    }
    changed_.notify_all();
    if (answer) on_grant(answer(demand.function));
    return id;
  }

  // What happens before a lease is confirmed.
  std::function<void(RequestId)> on_confirm = [](RequestId) {};

  void ConfirmLease(RequestId request, std::function<void()> done) override {
    on_confirm(request);
    done();
  }

  // What happens before a request's work is saved, and whether it ever is.
  std::function<void(RequestId)> on_save = [](RequestId) {};
  bool saves = true;

  void Save(RequestId request, std::function<void()> done) override {
    on_save(request);
    if (saves) done();
  }

  void AskAgain(RequestId request) override {
    {
      const std::lock_guard lock(mutex_);
      ++asked_again_;
    }
    Take(on_grant_, request.value)(answer_again ? answer_again() : SomeGrant());
  }

  void Release(RequestId, scheduler::Ending ending) override {
    {
      const std::lock_guard lock(mutex_);
      ++released_;
      ++ended_[ending];
    }
    changed_.notify_all();
  }

  void Answer(std::uint64_t request, absl::StatusOr<RequestGrant> grant) {
    Take(on_grant_, request)(std::move(grant));
  }
  void Lose(std::uint64_t request, absl::Status status) {
    Take(on_lost_, request)(std::move(status));
  }

  void WaitForAcquired(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return acquired_ >= count; });
  }
  void WaitForReleased(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return released_ >= count; });
  }
  std::uint64_t acquired() {
    const std::lock_guard lock(mutex_);
    return acquired_;
  }
  int asked_again() {
    const std::lock_guard lock(mutex_);
    return asked_again_;
  }
  std::uint64_t released() {
    const std::lock_guard lock(mutex_);
    return released_;
  }
  // As the caller names its last request.
  std::string last_id() {
    const std::lock_guard lock(mutex_);
    return demands_.at(acquired_).id;
  }
  Demand demand(std::uint64_t request) {
    const std::lock_guard lock(mutex_);
    return demands_.at(request);
  }
  // Of those that were released.
  std::uint64_t ended(scheduler::Ending ending) {
    const std::lock_guard lock(mutex_);
    return ended_[ending];
  }

 private:
  template <typename Callback>
  Callback Take(std::map<std::uint64_t, Callback>& callbacks, std::uint64_t request) {
    const std::lock_guard lock(mutex_);
    return callbacks.at(request);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t acquired_ = 0;
  std::uint64_t released_ = 0;
  int asked_again_ = 0;
  std::map<scheduler::Ending, std::uint64_t> ended_;
  std::map<std::uint64_t, Demand> demands_;
  std::map<std::uint64_t, OnGrant> on_grant_;
  std::map<std::uint64_t, OnLost> on_lost_;
};

}  // namespace torpor::server
