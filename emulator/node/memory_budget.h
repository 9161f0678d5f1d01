#pragma once

#include <optional>

#include "base/units.h"
#include "emulator/node/node_file.h"

namespace torpor::emulator {

// Counts how much of a GPU's memory all processes of the node use. Thread-safe.
class MemoryBudget {
 public:
  // `node` must outlive the budget. No more than `given_out` bytes can be taken, whatever free()
  // says.
  MemoryBudget(NodeFile& node, unsigned place, Bytes total,
               std::optional<Bytes> given_out = std::nullopt)
      : node_(node), place_(place), total_(total), given_out_(given_out.value_or(total)) {}

  // Takes `size` bytes, or returns false and takes nothing if less is left.
  bool Take(Bytes size);
  // Gives back bytes that this process has taken.
  void Return(Bytes size);
  Bytes total() const { return total_; }
  Bytes free();

 private:
  bool TakeLocked(Bytes size);
  Bytes Used() const;

  NodeFile& node_;
  const unsigned place_;
  const Bytes total_;
  const Bytes given_out_;
};

}  // namespace torpor::emulator
