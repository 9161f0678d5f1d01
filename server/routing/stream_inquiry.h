#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "proto/torpor/v1/router.pb.h"
#include "server/broker/node_inquiry.h"
#include "server/routing/torpord_link.h"

namespace torpor::server {

// The NodeInquiry of a router's process: asks torpord over a stream. An inquiry waits for a torpord
// that has been away for less than a second. Thread-safe; callbacks come on the caller's thread of
// the function that brings them.
class StreamInquiry final : public NodeInquiry {
 public:
  // torpord is away from now on. `clock` must outlive the object.
  explicit StreamInquiry(const Clock& clock) : clock_(clock), away_since_(clock.Now()) {}

  void AskReadiness(const std::string& function, std::function<void(Readiness)> on_answer) override;
  void AskMetrics(std::function<void(std::string)> on_answer) override;

  // --- The stream ---
  // torpord has welcomed the router.
  void Attach(std::shared_ptr<TorpordLink> link);
  void Detach();
  void OnMessage(const v1::TorpordMessage::Answer& answer);

  // Answers, in place of a torpord that is away or silent, what was asked over a second ago. Call
  // at least every second.
  void Expire();

 private:
  using Question = v1::RouterMessage::Inquiry;
  using OnAnswer = std::function<void(const v1::TorpordMessage::Answer&)>;

  struct Inquiry {
    Question question;
    OnAnswer on_answer;
    TimePoint answer_by;
  };

  void Ask(Question question, OnAnswer on_answer);
  void Send(const Question& question) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  Mutex mutex_;
  std::shared_ptr<TorpordLink> link_ ABSL_GUARDED_BY(mutex_);  // nullptr: torpord is away
  TimePoint away_since_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Inquiry> inquiries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::server
