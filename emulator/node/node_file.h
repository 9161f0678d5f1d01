#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "emulator/node/node_result.h"
#include "emulator/node/node_state.h"

namespace torpor::emulator {

// The NodeState of an emulated node, mapped from a file that its processes share, and this
// process's slot in it. Who maps it may be killed at any moment without harm to the others.
// Thread-safe.
class NodeFile {
 public:
  // Joins the node of `path`, which the first process creates. `description` says what the node is
  // and must be the same in all of them. Fails (kInvalid) where the file is another node's, or one
  // from before the machine's last start.
  static NodeResult<std::unique_ptr<NodeFile>> Join(const std::string& path,
                                                    const std::string& description);
  // The same without a slot of one's own, of a node that exists: to look at its state.
  static NodeResult<std::unique_ptr<NodeFile>> Observe(const std::string& path);
  // A node of this process alone.
  static NodeResult<std::unique_ptr<NodeFile>> Private();

  ~NodeFile();
  NodeFile(const NodeFile&) = delete;
  NodeFile& operator=(const NodeFile&) = delete;

  NodeState& state() { return *state_; }
  // The index among kMaxProcesses that is this process's while it lives. Not of an observer.
  unsigned slot() const { return slot_; }
  // Forgets what processes have taken that have died with memory of the GPU at `place`. Only under
  // the memory's mutex: who looks whether a process lives holds its lock for a moment.
  void ReclaimOfDead(unsigned place);

  // For a forked child: the slot remains its parent's and ends with that. What the child does here
  // from now on is seen by nobody.
  void LeaveToParent();

 private:
  NodeFile(UniqueFd file, void* mapping);
  bool ClaimSlot();
  void ForgetTaken(unsigned slot);

  // Open as long as the process lives: locks on it show that the slot is taken.
  UniqueFd file_;
  void* const mapping_;
  NodeState* const state_;
  unsigned slot_ = 0;
};

}  // namespace torpor::emulator
