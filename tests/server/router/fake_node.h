#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "server/broker/node_inquiry.h"

namespace torpor::server {

// A node that answers inquiries at once, or never while it is silent.
class FakeNode final : public NodeInquiry {
 public:
  void AskReadiness(const std::string& function,
                    std::function<void(Readiness)> on_answer) override {
    ++asked;
    if (is_silent) return;
    if (!is_ready) return on_answer({.reason = "no GPU serves"});
    if (function.empty()) return on_answer({.is_ready = true});
    if (!is_serving) return on_answer({.reason = "no instance has a session"});
    on_answer({.is_ready = true, .upstreams = {upstream}});
  }
  void AskMetrics(std::function<void(std::string)> on_answer) override {
    if (!is_silent) on_answer("torpor_build_info{version=\"0\"} 1\n");
  }

  std::atomic<int> asked = 0;  // for its readiness
  std::atomic<bool> is_ready = true;
  std::atomic<bool> is_serving = true;  // the function
  std::string upstream;                 // the function's; set before the first inquiry
  std::atomic<bool> is_silent = false;
};

}  // namespace torpor::server
