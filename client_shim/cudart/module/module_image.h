#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <vector>

namespace torpor::shim {

// The bytes of a fatbin, whose size its own header tells.
std::span<const std::uint8_t> FatbinAt(const void* fatbin);

// Copies what a program gives to be loaded at run time, whose size only it tells: a fatbin, nvcc's
// wrapper around one, a cubin, or PTX text, which is copied with its NUL.
// cudaErrorInvalidKernelImage if it is none of them; relocatable code is cudaErrorNotSupported.
cudaError_t CopyImage(const void* image, std::vector<std::uint8_t>& copy);

// The same of a file. cudaErrorFileNotFound.
cudaError_t ReadImageFile(const char* path, std::vector<std::uint8_t>& copy);

}  // namespace torpor::shim
