#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "server/broker/node_inquiry.h"
#include "server/router/loop_event.h"
#include "server/router/loop_link.h"
#include "server/router/request_metrics.h"

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
  // Returns the text of /metrics: the router's part, as of torpord's answer, then torpord's.
  // `counts` must outlive the desk. Rendered on a thread of its own: with thousands of functions
  // the text takes longer than other requests on the loop should wait.
  boost::asio::awaitable<std::string> AskMetrics(RequestMetrics& counts);

  // Ends all waits, which then answer as a node that does not answer, so that the loop can end.
  void Close();

 private:
  template <typename Answer>
  boost::asio::awaitable<Answer> Await(
      std::function<void(std::function<void(Answer)> on_answer)> ask);

  boost::asio::io_context& io_;
  NodeInquiry& node_;
  const std::shared_ptr<LoopLink> link_;
  const std::shared_ptr<boost::asio::thread_pool> rendering_;  // torpord's answers hold it, too
  std::set<LoopEvent*> waits_;
  bool is_closed_ = false;
};

}  // namespace torpor::server
