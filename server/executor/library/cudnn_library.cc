#include "server/executor/library/cudnn_library.h"

#include <dlfcn.h>

#include "base/status_macros.h"
#include "server/executor/gpu/dynamic_library.h"

namespace torpor::executor {

absl::StatusOr<cuda_api::CudnnFunctions> LoadCudnn(const std::string& directory) {
  TORPOR_ASSIGN_OR_RETURN(void* library, OpenLibrary(directory, "libcudnn.so.9"));
  return cuda_api::LoadCudnnFunctions(
      [library](const char* symbol) { return dlsym(library, symbol); });
}

}  // namespace torpor::executor
