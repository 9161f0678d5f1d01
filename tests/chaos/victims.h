#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/torpor/v1/admin.pb.h"
#include "server/supervisor/process_record.h"
#include "tests/chaos/function.h"
#include "tests/chaos/growth.h"
#include "tests/chaos/kill_plan.h"
#include "tests/chaos/load.h"
#include "tests/e2e/emulated_node.h"

namespace torpor::chaos {

// The processes of a node under torpor-init. Of one thread.
class Victims {
 public:
  // Both outlive it.
  Victims(e2e::EmulatedNode& node, const std::vector<std::unique_ptr<Function>>& functions);

  // Tells the load of the kill, kills a process, and names it: "executor 4711". Waits for the next
  // process of the kind if another kill has left none.
  absl::StatusOr<std::string> Kill(const chaos::Kill& kill, Load& load);

  // Whether every GPU is served by an executor that was not killed.
  bool AreGpusReady() const;
  // The use of all processes of a kind together, and all memory files of the node.
  Figures Measure() const;

 private:
  // Returns the processes of a kind that no kill has met. Not for functions.
  std::vector<pid_t> Candidates(Victim victim) const;
  std::vector<pid_t> ProcessesOf(const std::string& program) const;
  // Whether the process is there, and not about to end.
  bool IsAlive(pid_t process) const;

  e2e::EmulatedNode& node_;
  const std::vector<std::unique_ptr<Function>>& functions_;
  const std::string admin_socket_;
  std::vector<server::ProcessIdentity> killed_;
};

}  // namespace torpor::chaos
