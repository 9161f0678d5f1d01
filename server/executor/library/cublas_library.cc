#include "server/executor/library/cublas_library.h"

#include <dlfcn.h>

#include "base/status_macros.h"
#include "server/executor/gpu/dynamic_library.h"

namespace torpor::executor {

absl::StatusOr<cuda_api::CublasFunctions> LoadCublas(const std::string& directory) {
  TORPOR_ASSIGN_OR_RETURN(void* library, OpenLibrary(directory, "libcublas.so.13"));
  return cuda_api::LoadCublasFunctions(
      [library](const char* symbol) { return dlsym(library, symbol); });
}

}  // namespace torpor::executor
