#pragma once

#include "server/confinement/confinement.h"
#include "server/settings/executor_settings.h"

namespace torpor::executor {

// Returns what an executor, or the owner of a GPU's memory, needs of the file system.
server::Confinement ConfinementOf(const server::ExecutorSettings& settings);

}  // namespace torpor::executor
