#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "emulator/node/node_result.h"
#include "emulator/node/node_state.h"

namespace torpor::emulator {

// Maps the SharedNodeState of an emulated node from a file that its processes share, and holds this
// process's slot. A process may be killed at any moment without harm to the others. Thread-safe.
class NodeFile {
 public:
  // Joins the node with file `path`, created by the first process. `description` identifies the
  // node and must be equal in all processes. Fails with kInvalid if the file belongs to another
  // node, or dates from before the machine's last start.
  static NodeResult<std::unique_ptr<NodeFile>> Join(const std::string& path,
                                                    const std::string& description);
  // Maps an existing node without taking a slot, to look at its state.
  static NodeResult<std::unique_ptr<NodeFile>> Observe(const std::string& path);
  // Makes a node for this process alone.
  static NodeResult<std::unique_ptr<NodeFile>> Private();

  ~NodeFile();
  NodeFile(const NodeFile&) = delete;
  NodeFile& operator=(const NodeFile&) = delete;

  SharedNodeState& state() { return *state_; }
  // This process's index below kMaxProcesses, until the process ends. An observer has no slot.
  unsigned slot() const { return slot_; }
  // Returns the memory of the GPU at `place` that dead processes had taken. Call with the memory's
  // mutex held: the check locks the slots of other processes for a moment.
  void ReclaimOfDead(unsigned place);

  // For a forked child: leaves the slot to the parent and switches to private state, invisible to
  // other processes.
  void LeaveToParent();

 private:
  NodeFile(UniqueFd file, void* mapping);
  bool ClaimSlot();
  void ForgetTaken(unsigned slot);

  // Open until the process ends: locks on the file show that the slot is taken.
  UniqueFd file_;
  void* const mapping_;
  SharedNodeState* const state_;
  unsigned slot_ = 0;
};

}  // namespace torpor::emulator
