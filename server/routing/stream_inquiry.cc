#include "server/routing/stream_inquiry.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace torpor::server {
namespace {

// A restart of torpord that takes no longer is nobody's business.
constexpr Duration kMoment = std::chrono::seconds(1);

}  // namespace

void StreamInquiry::AskReadiness(std::function<void(Readiness)> on_answer) {
  Ask(Subject::READINESS, [on_answer = std::move(on_answer)](bool is_ready, std::string text) {
    on_answer({is_ready, std::move(text)});
  });
}

void StreamInquiry::AskMetrics(std::function<void(std::string)> on_answer) {
  Ask(Subject::METRICS, [on_answer = std::move(on_answer)](bool is_answered, std::string text) {
    on_answer(is_answered ? std::move(text) : std::string());
  });
}

void StreamInquiry::Ask(Subject::Subject subject, OnAnswer on_answer) {
  {
    MutexLock lock(&mutex_);
    const std::uint64_t id = ++last_id_;
    const TimePoint begin = link_ == nullptr ? away_since_ : clock_.Now();
    inquiries_[id] = {subject, std::move(on_answer), begin + kMoment};
    if (link_ != nullptr) Send(id, subject);
  }
  Expire();  // who has been away for long is not waited for
}

void StreamInquiry::Send(std::uint64_t id, Subject::Subject subject) {
  v1::RouterMessage message;
  message.mutable_inquiry()->set_inquiry_id(id);
  message.mutable_inquiry()->set_subject(subject);
  link_->Send(std::move(message));
}

void StreamInquiry::Attach(std::shared_ptr<TorpordLink> link) {
  MutexLock lock(&mutex_);
  link_ = std::move(link);
  for (const auto& [id, inquiry] : inquiries_) Send(id, inquiry.subject);
}

void StreamInquiry::Detach() {
  MutexLock lock(&mutex_);
  link_ = nullptr;
  away_since_ = clock_.Now();
}

void StreamInquiry::OnMessage(const v1::TorpordMessage::Answer& answer) {
  OnAnswer on_answer;
  {
    MutexLock lock(&mutex_);
    const auto found = inquiries_.find(answer.inquiry_id());
    if (found == inquiries_.end()) return;
    on_answer = std::move(found->second.on_answer);
    inquiries_.erase(found);
  }
  on_answer(answer.is_ready(), answer.text());
}

void StreamInquiry::Expire() {
  std::vector<OnAnswer> expired;
  std::string why = "torpord does not answer";
  {
    MutexLock lock(&mutex_);
    const TimePoint now = clock_.Now();
    for (auto inquiry = inquiries_.begin(); inquiry != inquiries_.end();) {
      if (inquiry->second.answer_by > now) {
        ++inquiry;
        continue;
      }
      expired.push_back(std::move(inquiry->second.on_answer));
      inquiry = inquiries_.erase(inquiry);
    }
    if (link_ == nullptr) {
      why = fmt::format("torpord has been away for {:.1f} s; requests wait",
                        ToSeconds(now - away_since_));
    }
  }
  for (const OnAnswer& on_answer : expired) on_answer(false, why);
}

}  // namespace torpor::server
