#pragma once

#include <span>

// Tables that the generator derives from NVIDIA's headers (driver_tables.cc in the build folder).
namespace torpor::shim {

// The name of an error code, such as CUDA_ERROR_INVALID_VALUE.
struct DriverErrorName {
  int code;
  const char* name;
};
std::span<const DriverErrorName> DriverErrorNames();

// One version of a function of the driver API.
struct DriverFunction {
  const char* name;  // without the version suffix
  int cuda_version;  // 1000 * major + 10 * minor of the release with this form
  void* function;
  void* per_thread;  // the variant with the per-thread default stream, or null
};
// Sorted by name, then by version.
std::span<const DriverFunction> DriverFunctions();

}  // namespace torpor::shim
