#pragma once

#include <cuda.h>

#include <cstddef>

// cuLink: what is linked is loaded by the executor's driver, which compiles PTX itself. So a link
// of one input is that input; several need a linker, which the executor does not have.
namespace torpor::shim {

CUresult CreateLink(unsigned option_count, CUjit_option* options, void** values, CUlinkState* link);
CUresult AddLinkData(CUlinkState link, CUjitInputType type, void* data, std::size_t bytes);
CUresult AddLinkFile(CUlinkState link, CUjitInputType type, const char* path);
// *code is the linked module code; valid until DestroyLink.
CUresult CompleteLink(CUlinkState link, void** code, std::size_t* bytes);
CUresult DestroyLink(CUlinkState link);

}  // namespace torpor::shim
