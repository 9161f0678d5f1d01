// Functions of the driver API by name (cudaGetDriverEntryPoint), from the libcuda.so.1 in the same
// folder.
#include <cuda.h>
#include <dlfcn.h>

#include <string>

#include "client_shim/cudart/call/entry.h"

namespace torpor::shim {
namespace {

using GetProcAddress = decltype(&::cuGetProcAddress_v2);

// The path of a library in the folder of libcudart.so.13.
std::string PathBesideUs(const char* name) {
  Dl_info ours{};
  dladdr(reinterpret_cast<const void*>(&PathBesideUs), &ours);
  const std::string path = ours.dli_fname ? ours.dli_fname : "";
  return path.substr(0, path.rfind('/') + 1) + name;
}

GetProcAddress FindGetProcAddress() {
  void* const library = dlopen(PathBesideUs("libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const function = library ? dlsym(library, "cuGetProcAddress_v2") : nullptr;
  if (!function)
    Core().WarnOnce("libcuda",
                    "no libcuda.so.1 in the folder of libcudart.so.13: the program needs it for"
                    " functions of the driver API");
  return reinterpret_cast<GetProcAddress>(function);
}

// Both APIs number flags and results of the search alike.
cudaError_t FindFunction(const char* name, void** function, unsigned version,
                         unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  if (!name || !function || flags > cudaEnablePerThreadDefaultStream) return cudaErrorInvalidValue;
  static const GetProcAddress find = FindGetProcAddress();
  if (!find) return cudaErrorInsufficientDriver;
  return static_cast<cudaError_t>(find(name, function, static_cast<int>(version), flags,
                                       reinterpret_cast<CUdriverProcAddressQueryResult*>(status)));
}

// The flags of a program compiled for per-thread default streams.
unsigned long long PerThread(unsigned long long flags) {
  if (flags == cudaEnableDefault) return cudaEnablePerThreadDefaultStream;
  return flags;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult* status) {
  return Entry([&] { return FindFunction(name, function, CUDART_VERSION, flags, status); });
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char* name, void** function,
                                         unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult* status) {
  return Entry(
      [&] { return FindFunction(name, function, CUDART_VERSION, PerThread(flags), status); });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult* status) {
  return Entry([&] { return FindFunction(name, function, version, flags, status); });
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* name, void** function,
                                                  unsigned version, unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult* status) {
  return Entry([&] { return FindFunction(name, function, version, PerThread(flags), status); });
}
