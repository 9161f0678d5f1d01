#include "server/routing/stream_inquiry.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace torpor::server {
namespace {

// A restart of torpord that takes no longer is nobody's business.
constexpr Duration kMoment = std::chrono::seconds(1);

}  // namespace

void StreamInquiry::AskReadiness(const std::string& function,
                                 std::function<void(Readiness)> on_answer) {
  Question question;
  question.set_subject(Question::READINESS);
  question.set_function(function);
  Ask(std::move(question),
      [on_answer = std::move(on_answer)](const v1::TorpordMessage::Answer& answer) {
        on_answer({.is_ready = answer.is_ready(),
                   .reason = answer.text(),
                   .upstreams = {answer.upstreams().begin(), answer.upstreams().end()}});
      });
}

void StreamInquiry::AskMetrics(std::function<void(std::string)> on_answer) {
  Question question;
  question.set_subject(Question::METRICS);
  Ask(std::move(question),
      [on_answer = std::move(on_answer)](const v1::TorpordMessage::Answer& answer) {
        on_answer(answer.is_ready() ? answer.text() : std::string());
      });
}

void StreamInquiry::Ask(Question question, OnAnswer on_answer) {
  {
    MutexLock lock(&mutex_);
    question.set_inquiry_id(++last_id_);
    const TimePoint begin = link_ == nullptr ? away_since_ : clock_.Now();
    if (link_ != nullptr) Send(question);
    inquiries_[last_id_] = {std::move(question), std::move(on_answer), begin + kMoment};
  }
  Expire();  // who has been away for long is not waited for
}

void StreamInquiry::Send(const Question& question) {
  v1::RouterMessage message;
  *message.mutable_inquiry() = question;
  link_->Send(std::move(message));
}

void StreamInquiry::Attach(std::shared_ptr<TorpordLink> link) {
  MutexLock lock(&mutex_);
  link_ = std::move(link);
  for (const auto& [id, inquiry] : inquiries_) Send(inquiry.question);
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
  on_answer(answer);
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
  v1::TorpordMessage::Answer no_answer;
  no_answer.set_text(why);
  for (const OnAnswer& on_answer : expired) on_answer(no_answer);
}

}  // namespace torpor::server
