#pragma once

#include <cuda.h>

#include <cstddef>

// cuLink. The executor's driver loads the result and compiles PTX itself, so a link of one input
// results in that input. Several inputs need a linker, which the executor does not have, and are
// refused.
namespace torpor::shim {

// Creates an empty link. The options have no effect but for log buffers, which are reported empty.
CUresult CreateLink(unsigned option_count, CUjit_option* options, void** values, CUlinkState* link);
// Adds the only input: PTX, a cubin or a fatbin, which is copied. Returns CUDA_ERROR_NOT_SUPPORTED
// for other types of input and for a second one.
CUresult AddLinkData(CUlinkState link, CUjitInputType type, void* data, std::size_t bytes);
CUresult AddLinkFile(CUlinkState link, CUjitInputType type, const char* path);
// *code is the linked module code; valid until DestroyLink.
CUresult CompleteLink(CUlinkState link, void** code, std::size_t* bytes);
CUresult DestroyLink(CUlinkState link);

}  // namespace torpor::shim
