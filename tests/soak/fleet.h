#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/sequence_model.h"
#include "tests/soak/failures.h"
#include "tests/soak/gate.h"

namespace torpor::soak {

// The functions of a node, and for each a model that knows its right answers. A wrong answer, or
// none, is a failure of the test.
class Fleet {
 public:
  // The node's configuration has functions of these names, and requests go through `gate`. All
  // must outlive the fleet.
  Fleet(e2e::EmulatedNode& node, const std::vector<std::string>& names, Gate& gate,
        Failures& failures, unsigned seed);

  // Of one thread: starts a process for every function.
  void Start();
  // Of that thread: kills a process, be it in the middle of a request, and starts another.
  void RestartOne();
  // Of that thread: ends all processes, without asking them.
  void Stop();

  // A random request to a random function that nobody asks at this moment. Thread-safe.
  void AskOne(std::mt19937& random);
  // Every function for its next answer, and how much memory it has.
  void AskAll();

  // Device memory that the functions have allocated, as the models know it, by their names.
  std::map<std::string, Bytes> AllocatedBytes() const;

  std::uint64_t restarts() const { return restarts_; }
  Duration slowest() const { return Duration(slowest_.load()); }

 private:
  struct Function {
    std::string name;
    std::mutex mutex;  // held while it is asked, guards what follows
    std::optional<e2e::SequenceModel> model;
    std::deque<std::string> journal;      // the requests that led to its state, the last ones
    std::atomic<bool> is_doomed = false;  // its process is about to be killed
  };

  void StartOne(Function& function);
  void Ask(Function& function, const e2e::Turn& turn);
  static std::string JournalOf(const Function& function);

  e2e::EmulatedNode& node_;
  Gate& gate_;
  Failures& failures_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<Function>> functions_;
  std::atomic<std::uint64_t> restarts_ = 0;
  std::atomic<Duration::rep> slowest_ = 0;
};

}  // namespace torpor::soak
