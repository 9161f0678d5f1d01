// NVRTC's functions, which call NVIDIA's library. With an emulated GPU, which runs no machine code,
// a compilation for sm_XX becomes a compilation for compute_XX, and the program gets the PTX in
// place of the cubin: cuModuleLoadData accepts either.
#include <nvrtc.h>

#include <vector>

#include "client_shim/nvrtc/architecture_option.h"
#include "client_shim/nvrtc/real_library.h"
#include "client_shim/nvrtc/steered_programs.h"

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

namespace {

nvrtcResult CompileVirtual(nvrtcProgram program, const VirtualOptions& wanted) {
  std::vector<const char*> options;
  for (const std::string& option : wanted.options) options.push_back(option.c_str());
  const nvrtcResult result = CallReal(&nvrtcCompileProgram, "nvrtcCompileProgram", program,
                                      static_cast<int>(options.size()), options.data());
  if (result == NVRTC_SUCCESS) RememberSteered(program);
  return result;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  ForgetSteered(program);
  if (count > 0 && options) {
    const VirtualOptions wanted = ForVirtualArchitecture(count, options);
    if (wanted.is_changed && NeedsPtx()) return CompileVirtual(program, wanted);
  }
  return CallReal(&nvrtcCompileProgram, "nvrtcCompileProgram", program, count, options);
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  if (IsSteered(program)) return CallReal(&nvrtcGetPTXSize, "nvrtcGetPTXSize", program, bytes);
  return CallReal(&nvrtcGetCUBINSize, "nvrtcGetCUBINSize", program, bytes);
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
  if (IsSteered(program)) return CallReal(&nvrtcGetPTX, "nvrtcGetPTX", program, cubin);
  return CallReal(&nvrtcGetCUBIN, "nvrtcGetCUBIN", program, cubin);
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  if (program) ForgetSteered(*program);
  return CallReal(&nvrtcDestroyProgram, "nvrtcDestroyProgram", program);
}

// The other functions call NVIDIA's library unchanged.

const char* nvrtcGetErrorString(nvrtcResult result) {
  const auto real =
      reinterpret_cast<decltype(&nvrtcGetErrorString)>(RealFunction("nvrtcGetErrorString"));
  return real ? real(result) : "NVRTC_ERROR_INTERNAL_ERROR";
}

nvrtcResult nvrtcVersion(int* major, int* minor) {
  return CallReal(&nvrtcVersion, "nvrtcVersion", major, minor);
}

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  return CallReal(&nvrtcGetNumSupportedArchs, "nvrtcGetNumSupportedArchs", count);
}

nvrtcResult nvrtcGetSupportedArchs(int* architectures) {
  return CallReal(&nvrtcGetSupportedArchs, "nvrtcGetSupportedArchs", architectures);
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char* name,
                               int header_count, const char* const* headers,
                               const char* const* include_names) {
  return CallReal(&nvrtcCreateProgram, "nvrtcCreateProgram", program, source, name, header_count,
                  headers, include_names);
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* bytes) {
  return CallReal(&nvrtcGetPTXSize, "nvrtcGetPTXSize", program, bytes);
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* ptx) {
  return CallReal(&nvrtcGetPTX, "nvrtcGetPTX", program, ptx);
}

nvrtcResult nvrtcGetLTOIRSize(nvrtcProgram program, size_t* bytes) {
  return CallReal(&nvrtcGetLTOIRSize, "nvrtcGetLTOIRSize", program, bytes);
}

nvrtcResult nvrtcGetLTOIR(nvrtcProgram program, char* ir) {
  return CallReal(&nvrtcGetLTOIR, "nvrtcGetLTOIR", program, ir);
}

nvrtcResult nvrtcGetOptiXIRSize(nvrtcProgram program, size_t* bytes) {
  return CallReal(&nvrtcGetOptiXIRSize, "nvrtcGetOptiXIRSize", program, bytes);
}

nvrtcResult nvrtcGetOptiXIR(nvrtcProgram program, char* ir) {
  return CallReal(&nvrtcGetOptiXIR, "nvrtcGetOptiXIR", program, ir);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) {
  return CallReal(&nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize", program, bytes);
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  return CallReal(&nvrtcGetProgramLog, "nvrtcGetProgramLog", program, log);
}

nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char* const expression) {
  return CallReal(&nvrtcAddNameExpression, "nvrtcAddNameExpression", program, expression);
}

nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char* const expression,
                                const char** name) {
  return CallReal(&nvrtcGetLoweredName, "nvrtcGetLoweredName", program, expression, name);
}

nvrtcResult nvrtcGetPCHHeapSize(size_t* bytes) {
  return CallReal(&nvrtcGetPCHHeapSize, "nvrtcGetPCHHeapSize", bytes);
}

nvrtcResult nvrtcSetPCHHeapSize(size_t bytes) {
  return CallReal(&nvrtcSetPCHHeapSize, "nvrtcSetPCHHeapSize", bytes);
}

nvrtcResult nvrtcGetPCHCreateStatus(nvrtcProgram program) {
  return CallReal(&nvrtcGetPCHCreateStatus, "nvrtcGetPCHCreateStatus", program);
}

nvrtcResult nvrtcGetPCHHeapSizeRequired(nvrtcProgram program, size_t* bytes) {
  return CallReal(&nvrtcGetPCHHeapSizeRequired, "nvrtcGetPCHHeapSizeRequired", program, bytes);
}

nvrtcResult nvrtcSetFlowCallback(nvrtcProgram program, int (*callback)(void*, void*),
                                 void* payload) {
  return CallReal(&nvrtcSetFlowCallback, "nvrtcSetFlowCallback", program, callback, payload);
}

}  // extern "C"
#pragma GCC visibility pop
