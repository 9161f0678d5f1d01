#pragma once

#include <functional>
#include <string>

namespace torpor::server {

// Whether a node serves requests.
struct Readiness {
  bool is_ready = false;
  std::string reason;  // why not
};

// What the router asks the node for answers of its own. Thread-safe; callbacks come once, on any
// thread, within a second or two whatever the node does, and must not block.
class NodeInquiry {
 public:
  virtual ~NodeInquiry() = default;

  virtual void AskReadiness(std::function<void(Readiness)> on_answer) = 0;
  // The node's part of the text of /metrics; empty if the node does not answer.
  virtual void AskMetrics(std::function<void(std::string)> on_answer) = 0;
};

}  // namespace torpor::server
