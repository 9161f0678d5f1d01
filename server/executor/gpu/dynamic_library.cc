#include "server/executor/gpu/dynamic_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::executor {

absl::StatusOr<void*> OpenLibrary(const std::string& directory, const std::string& file) {
  const std::string path = directory.empty() ? file : absl::StrCat(directory, "/", file);
  // Never closed: a driver has threads that outlive any possible owner of the handle.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return absl::NotFoundError(absl::StrCat("cannot open ", path, ": ", reason,
                                            "; --cuda-library-dir names the folder to look in"));
  }
  return library;
}

absl::Status LoadSymbols(const std::string& directory, const std::string& file,
                         std::span<const Symbol> symbols) {
  TORPOR_ASSIGN_OR_RETURN(void* library, OpenLibrary(directory, file));
  for (const Symbol& symbol : symbols) {
    *symbol.slot = dlsym(library, symbol.name);
    if (*symbol.slot == nullptr) {
      return absl::NotFoundError(absl::StrCat(file, " has no symbol ", symbol.name,
                                              "; a driver for CUDA 13 or later is needed"));
    }
  }
  return absl::OkStatus();
}

}  // namespace torpor::executor
