#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <vector>

namespace torpor::shim {

// The bytes of a fatbin, as long as the fatbin's header says.
std::span<const std::uint8_t> FatbinAt(const void* fatbin);

// Copies code for loading at run time: a fatbin, nvcc's wrapper around a fatbin, a cubin, or PTX
// text with the final NUL. The size comes from the code's own header or NUL.
// cudaErrorInvalidKernelImage for anything else, cudaErrorNotSupported for relocatable code.
cudaError_t CopyModuleCode(const void* code, std::vector<std::uint8_t>& copy);

// Reads a file and appends the NUL that PTX text in files lacks. cudaErrorFileNotFound if the file
// cannot be opened, cudaErrorOperatingSystem if reading fails.
cudaError_t ReadModuleFile(const char* path, std::vector<std::uint8_t>& copy);

}  // namespace torpor::shim
