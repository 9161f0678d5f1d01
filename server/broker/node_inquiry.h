#pragma once

#include <functional>
#include <string>
#include <vector>

namespace torpor::server {

// Whether a node, or a function on it, serves requests.
struct Readiness {
  bool is_ready = false;
  std::string reason{};  // why not
  // The servers (host:port) of the function's instances that can serve; empty for the node.
  std::vector<std::string> upstreams{};
};

// What the router asks the node for answers of its own. Thread-safe; callbacks come once, on any
// thread, within a second or two whatever the node does, and must not block.
class NodeInquiry {
 public:
  virtual ~NodeInquiry() = default;

  // Of a function: whether the node is ready, and an instance has a session that can serve. Of the
  // node alone if `function` is empty.
  virtual void AskReadiness(const std::string& function,
                            std::function<void(Readiness)> on_answer) = 0;
  // The node's part of the text of /metrics; empty if the node does not answer.
  virtual void AskMetrics(std::function<void(std::string)> on_answer) = 0;
};

}  // namespace torpor::server
