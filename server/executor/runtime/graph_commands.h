#pragma once

#include <cstdint>

namespace torpor::executor {

// Whether a command is work on a stream, as a graph may have: such commands neither make nor change
// objects.
bool CanBeInGraph(std::uint32_t call_id);
// Whether the work is a library's, on the library's handle.
bool IsLibraryWork(std::uint32_t call_id);
// Whether the driver can keep the work in a graph of its own: the work needs nothing of the host at
// each launch, and names only memory that stays the session's.
bool CanBeInDriverGraph(std::uint32_t call_id);
// Whether a command leaves alone all that a graph of the driver has captured: kernels, variables,
// textures, attributes, the state of libraries.
bool KeepsDriverGraphs(std::uint32_t call_id);

}  // namespace torpor::executor
