#pragma once

#include <span>

// Tables that generate_driver_tables.py makes from cuda.h and cudaTypedefs.h.
namespace torpor::emulator {

struct ErrorName {
  int code;
  const char* name;
};
std::span<const ErrorName> ErrorNames();

// One version of a function of the driver API.
struct ApiEntry {
  const char* name;  // without the version suffix
  int cuda_version;  // 1000 * major + 10 * minor of the release that brought it
  void (*function)();
  void (*per_thread)();  // the `_ptsz` or `_ptds` variant; null if there is none
};
// Sorted by name, then by version.
std::span<const ApiEntry> ApiEntries();

// Returns CUDA_ERROR_NOT_SUPPORTED; the first call for each `function` prints that the emulator
// lacks it.
int NotSupported(const char* function);

}  // namespace torpor::emulator
