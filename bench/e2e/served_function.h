#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/node/model_account.h"
#include "tests/e2e/emulated_node.h"

namespace torpor::bench {

struct ServedProgram {
  std::vector<std::string> command;
  std::string path;                      // of its requests
  std::function<std::string(int)> body;  // of request 0, 1, ...; all have the same answer
  std::string setting;                   // a line of the function's configuration, or empty
};

// torpord with one function on the first GPU of the paper's node, and what the requests of this one
// take: real programs, modelled milliseconds. A wrong answer ends the process.
class ServedFunction {
 public:
  // `settings` are further lines of torpord's configuration. Returns when the function's order of
  // use is known.
  ServedFunction(const std::string& topology, const std::string& settings, ServedProgram program);

  // A request's latency while the function is resident.
  double Warm();

  struct Moved {
    double in = 0;   // bytes
    double out = 0;  // bytes of the eviction before
  };
  struct ColdRun {
    double latency_ms = 0;
    double transfer_ms = 0;  // from the beginning of the swap-in until all is on the GPU
    double out_ms = 0;       // the eviction before, as torpord measures it
    double bytes = 0;        // that came in
    std::map<std::string, Moved> by_origin;
  };
  // Evicts the function; then a request.
  ColdRun Cold();

  // Of all that happened since the constructor returned.
  emulator::ModelReport Report() const { return account_->Read(); }

 private:
  e2e::Reply Ask(const std::string& from);
  void Evict() const;
  std::string AwaitSwapIn(double before) const;

  const ServedProgram program_;
  e2e::EmulatedNode node_;
  std::string metrics_address_;
  std::string answer_;
  int requests_ = 0;
  std::unique_ptr<emulator::ModelAccount> account_;
};

}  // namespace torpor::bench
