#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

// Copies between pageable memory of the program and a variable of a module.
namespace torpor::shim {

// A place in a variable, and the stream that orders a copy. Ids are wire names.
struct VariablePart {
  std::uint64_t module = 0;  // must be loaded
  std::string name;
  std::uint64_t offset = 0;  // bytes
  std::uint64_t stream = 0;  // 0: the legacy default stream
};

// Reads `from` before returning; errors of the copy come with a later call.
cudaError_t UploadToVariable(const VariablePart& part, const void* from, std::uint64_t bytes);
// Waits for the stream, then for the bytes.
cudaError_t DownloadFromVariable(const VariablePart& part, void* to, std::uint64_t bytes);

}  // namespace torpor::shim
