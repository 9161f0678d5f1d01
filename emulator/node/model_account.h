#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "emulator/node/node_file.h"
#include "emulator/node/node_result.h"

namespace torpor::emulator {

// Work, with a duration in the model, of all processes of an emulated node.
struct ModelledWork {
  std::uint64_t count = 0;
  Duration modelled{};  // time that it should have taken, stretched by time_scale
  Duration real{};      // time that it took

  // The delay as a fraction of the modelled time; at least 0.
  double behind() const;
};

// Whether the emulation kept up with the model during a measurement.
struct ModelReport {
  // Beyond this delay a measurement reflects the machine rather than the model.
  static constexpr double kMaxBehind = 0.05;

  ModelledWork copies;   // over links that have a rate
  ModelledWork kernels;  // that the topology gives a time

  bool is_valid() const { return copies.behind() <= kMaxBehind && kernels.behind() <= kMaxBehind; }
  // Returns a line for the output of a benchmark: "VALID" or "INVALID" with the figures, or
  // "NOTHING MODELLED" if no work had a modelled duration, as on another node.
  std::string ToText() const;
};

// Tells whether the emulation of a node keeps up with its model. A benchmark resets the account
// when a measurement begins and reads the account at the end. Thread-safe.
class ModelAccount {
 public:
  // Opens the account of the node with file `path` (TORPOR_EMULATOR_NODE, or emulator-node in
  // torpord's run_dir). The file exists once the first process has started.
  static NodeResult<ModelAccount> Open(const std::string& path);

  void Reset();
  ModelReport Read() const;

 private:
  explicit ModelAccount(std::unique_ptr<NodeFile> node) : node_(std::move(node)) {}

  std::unique_ptr<NodeFile> node_;
};

// Adds a piece of work to the counters; called by the emulator.
void Note(ModelledWorkCounters& counters, Duration modelled, Duration real);

}  // namespace torpor::emulator
