#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "emulator/node/node_file.h"
#include "emulator/node/node_result.h"

namespace torpor::emulator {

// Work of all processes of an emulated node that has a time in the model.
struct ModelledWork {
  std::uint64_t count = 0;
  Duration modelled{};  // time that it should have taken, stretched by time_scale
  Duration real{};      // time that it took

  // By how much it was late, as a part of what it should have taken; at least 0.
  double behind() const;
};

struct ModelReport {
  // Beyond this what was measured says more of the machine than of the model.
  static constexpr double kMaxBehind = 0.05;

  ModelledWork copies;   // over links that have a rate
  ModelledWork kernels;  // that the topology gives a time

  bool is_valid() const { return copies.behind() <= kMaxBehind && kernels.behind() <= kMaxBehind; }
  // "VALID" or "INVALID", with the figures, or "NOTHING MODELLED", which says that the measurement
  // was of another node or of one without times: one line for the output of a benchmark.
  std::string ToText() const;
};

// Whether the emulation of a node keeps up with its model: for a benchmark, which resets the
// account when its measurement begins and reads it at the end. Thread-safe.
class ModelAccount {
 public:
  // Of the node whose file is `path` (TORPOR_EMULATOR_NODE, or emulator-node in torpord's run_dir).
  // It exists once the first process has started.
  static NodeResult<ModelAccount> Open(const std::string& path);

  void Reset();
  ModelReport Read() const;

 private:
  explicit ModelAccount(std::unique_ptr<NodeFile> node) : node_(std::move(node)) {}

  std::unique_ptr<NodeFile> node_;
};

// Notes a piece of work; for the emulator itself.
void Note(ModelledWorkCounters& counters, Duration modelled, Duration real);

}  // namespace torpor::emulator
