#pragma once

#include "base/units.h"
#include "emulator/node/node_file.h"

namespace torpor::emulator {

// How much of a GPU's memory is in use, by all processes of the node. Thread-safe.
class MemoryBudget {
 public:
  // `node` must outlive the budget.
  MemoryBudget(NodeFile& node, unsigned place, Bytes total)
      : node_(node), place_(place), total_(total) {}

  // False, and nothing is taken, where less than `size` is left.
  bool Take(Bytes size);
  void Return(Bytes size);
  Bytes total() const { return total_; }
  Bytes free();

 private:
  bool TakeLocked(Bytes size);
  Bytes Used() const;

  NodeFile& node_;
  const unsigned place_;
  const Bytes total_;
};

}  // namespace torpor::emulator
