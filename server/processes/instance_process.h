#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/processes/instance_command.h"
#include "server/supervisor/child_process.h"

namespace torpor::server {

// Starts a function's process. It outlives the daemon, leads a session and a process group of its
// own, in the folder /, and has an empty standard input, this process's standard error as output
// and no further descriptor. The program runs only once the record (process_record.h) is written at
// `record_path`, so that no daemon's death can leave a process behind that the next one does not
// know. The error tells what the process could not do.
absl::StatusOr<std::unique_ptr<ChildProcess>> StartInstance(const InstanceCommand& command,
                                                            const std::string& record_path);

}  // namespace torpor::server
