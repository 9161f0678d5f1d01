#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "proto/torpor/v1/admin.pb.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/process_figures.h"

namespace torpor::soak {

// torpord and its executors, watched for what they leave behind. Every difference is a failure of
// the test. Of one thread.
class WatchedNode {
 public:
  using Figures = std::map<std::string, e2e::ProcessFigures>;  // by what the process is

  // The node has not started, and outlives this.
  explicit WatchedNode(e2e::EmulatedNode& node);

  // Returns when every GPU is ready.
  void Start();

  v1::NodeStatus Status() const;
  // Waits until `is_so` of the status, a minute at most.
  void WaitForStatus(const std::string& what,
                     const std::function<bool(const v1::NodeStatus&)>& is_so) const;

  Figures Measure() const;
  static void Print(const char* when, const Figures& figures);
  // Before the first function came.
  const Figures& bare() const { return bare_; }

  // Nobody has grown since the warm-up, but for connections to so many functions. Executors may
  // have been killed since, but not the one of GPU 0.
  void CheckGrowth(const Figures& warm, const Figures& after, int functions) const;
  // All functions' processes have ended. `is_translating`: executors have arenas mapped, whose
  // pages come into being when they are used.
  void CheckThatFunctionsLeaveNothing(bool is_translating) const;
  // Ends the daemon.
  void CheckThatTheDaemonLeavesNothing();

  // For a failure's message.
  std::string EndOfLog() const;

  const std::string& admin_socket() const { return socket_; }

 private:
  e2e::EmulatedNode& node_;
  const std::string socket_;
  Figures bare_;
  std::vector<pid_t> executors_;
};

}  // namespace torpor::soak
