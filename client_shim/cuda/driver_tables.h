#pragma once

#include <span>

// Tables that the generator makes of NVIDIA's headers (driver_tables.cc in the build folder).
namespace torpor::shim {

struct DriverErrorName {
  int code;
  const char* name;
};
std::span<const DriverErrorName> DriverErrorNames();

// One version of a function of the driver API.
struct DriverFunction {
  const char* name;  // without the version suffix
  int cuda_version;  // 1000 * major + 10 * minor of the release that brought it
  void* function;
  void* per_thread;  // its variant with the per-thread default stream; null if there is none
};
// By name, and of each name by version.
std::span<const DriverFunction> DriverFunctions();

}  // namespace torpor::shim
