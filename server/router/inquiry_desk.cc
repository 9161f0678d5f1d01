#include "server/router/inquiry_desk.h"

#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

namespace torpor::server {
namespace {

template <typename Answer>
struct Wait {
  explicit Wait(boost::asio::io_context& io) : event(io) {}

  LoopEvent event;
  std::optional<Answer> answer;
};

}  // namespace

InquiryDesk::InquiryDesk(boost::asio::io_context& io, NodeInquiry& node)
    : io_(io),
      node_(node),
      link_(std::make_shared<LoopLink>(io)),
      rendering_(std::make_shared<boost::asio::thread_pool>(1)) {}

InquiryDesk::~InquiryDesk() {
  link_->Cut();
  rendering_->join();
}

template <typename Answer>
boost::asio::awaitable<Answer> InquiryDesk::Await(
    std::function<void(std::function<void(Answer)> on_answer)> ask) {
  const auto wait = std::make_shared<Wait<Answer>>(io_);
  // The wait is destroyed on the loop's thread, or with the loop: posted actions share it.
  std::function<void(Answer)> on_answer = [link = link_,
                                           weak = std::weak_ptr(wait)](Answer answer) {
    link->Post([weak, answer = std::move(answer)]() mutable {
      const auto still_there = weak.lock();
      if (!still_there) return;
      still_there->answer = std::move(answer);
      still_there->event.Notify();
    });
  };
  ask(std::move(on_answer));
  waits_.insert(&wait->event);
  while (!wait->answer && !is_closed_) co_await wait->event.Wait();
  waits_.erase(&wait->event);
  Answer answer;
  if (wait->answer) answer = std::move(*wait->answer);
  co_return answer;
}

boost::asio::awaitable<Readiness> InquiryDesk::AskReadiness(const std::string& function) {
  return Await<Readiness>([this, function](std::function<void(Readiness)> done) {
    node_.AskReadiness(function, std::move(done));
  });
}

boost::asio::awaitable<std::string> InquiryDesk::AskMetrics(RequestMetrics& counts) {
  return Await<std::string>([this, &counts](std::function<void(std::string)> done) {
    node_.AskMetrics([rendering = rendering_, &counts, done = std::move(done)](std::string node) {
      boost::asio::post(*rendering,
                        [&counts, done, node = std::move(node)] { done(counts.Render() + node); });
    });
  });
}

void InquiryDesk::Close() {
  is_closed_ = true;
  for (LoopEvent* const wait : waits_) wait->Notify();
}

}  // namespace torpor::server
