#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "server/broker/node_inquiry.h"
#include "server/router/loop_event.h"
#include "server/router/loop_link.h"

namespace torpor::server {

// NodeInquiry for coroutines on the router's loop. Used on the router's thread.
class InquiryDesk {
 public:
  // `node` must outlive the desk.
  InquiryDesk(boost::asio::io_context& io, NodeInquiry& node);
  ~InquiryDesk();
  InquiryDesk(const InquiryDesk&) = delete;
  InquiryDesk& operator=(const InquiryDesk&) = delete;

  boost::asio::awaitable<Readiness> AskReadiness(const std::string& function);
  boost::asio::awaitable<std::string> AskMetrics();

  // Ends all waits, which then answer as a node that does not answer, so that the loop can end.
  void Close();

 private:
  template <typename Answer>
  boost::asio::awaitable<Answer> Await(
      std::function<void(std::function<void(Answer)> on_answer)> ask);

  boost::asio::io_context& io_;
  NodeInquiry& node_;
  const std::shared_ptr<LoopLink> link_;
  std::set<LoopEvent*> waits_;
  bool is_closed_ = false;
};

}  // namespace torpor::server
