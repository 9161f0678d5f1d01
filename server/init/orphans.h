#pragma once

#include <sys/types.h>

#include <vector>

namespace torpor::init {

// Makes this process the parent of its descendants whose own parents end, as process 1 is anyway.
void AdoptOrphans();

// The processes whose parent this process is, adopted ones too.
std::vector<pid_t> Children();

}  // namespace torpor::init
