#pragma once

#include <functional>

#include "server/executor/gpu/device.h"

namespace torpor::executor {

// A graph of the driver, made of what other code enqueues, and launched by a single call. Not
// thread-safe; call with the device current.
class DriverGraph {
 public:
  explicit DriverGraph(const Device& device) : device_(device) {}
  ~DriverGraph() { Drop(); }
  DriverGraph(const DriverGraph&) = delete;
  DriverGraph& operator=(const DriverGraph&) = delete;

  // Makes the graph of what `enqueue` enqueues on `stream`, and on streams that wait for that work
  // and are waited for by `stream` in the end. Nothing of this runs. A graph made earlier is
  // updated if possible. False if `enqueue` returns false, or if the driver cannot make a graph of
  // the work; there is no graph then. `stream` has no other user.
  bool Capture(CUstream stream, const std::function<bool()>& enqueue);

  // Whether there is a graph to launch.
  bool is_ready() const { return exec_ != nullptr; }
  CUresult Launch(CUstream stream) const { return device_.driver().GraphLaunch(exec_, stream); }
  // Launches under way go on.
  void Drop();

 private:
  bool Instantiate(CUgraph graph);

  const Device& device_;
  CUgraphExec exec_ = nullptr;
};

}  // namespace torpor::executor
