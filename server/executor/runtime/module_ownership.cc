#include "server/executor/runtime/module_ownership.h"

#include <driver_types.h>

#include "absl/strings/str_cat.h"
#include "server/executor/gpu/call_status.h"

namespace torpor::executor {

using cuda_api::CallFailed;
using cuda_api::CallStatus;

CallStatus ModuleOwnership::TakeOwn(std::uint64_t module, std::string_view what) {
  if (!modules_.IsShared(module)) return {};
  if (CallStatus arrived = ToCallStatus(image_.arrival().Wait(), what); !arrived.ok()) {
    return arrived;
  }
  CUresult result = streams_.Synchronize();
  CUstream stream = nullptr;
  if (result == CUDA_SUCCESS) result = streams_.Use(StreamSet::kLegacy, stream);
  if (result != CUDA_SUCCESS) return ToCallStatus(device_.driver(), result, what);
  return ToCallStatus(modules_.TakeOwn(module, stream), what);
}

CallStatus ModuleOwnership::Variable(std::uint64_t module, std::string_view name,
                                     const LoadedVariable*& variable) {
  variable = modules_.FindVariable(module, name);
  if (variable == nullptr) {
    return CallFailed(
        cudaErrorInvalidSymbol,
        absl::StrCat("the module has no variable ", absl::string_view(name.data(), name.size())));
  }
  if (CallStatus own = TakeOwn(module, "using a variable"); !own.ok()) return own;
  variable = modules_.FindVariable(module, name);
  return {};
}

CallStatus ModuleOwnership::VariableBytes(std::uint64_t module, std::string_view name,
                                          std::uint64_t offset, Bytes bytes, CUdeviceptr& address) {
  image_.touches().UseAll();
  const LoadedVariable* variable = nullptr;
  if (CallStatus used = Variable(module, name, variable); !used.ok()) return used;
  if (offset > variable->bytes || bytes > variable->bytes - offset) {
    return CallFailed(cudaErrorInvalidSymbol, absl::StrCat("a variable of ", variable->bytes,
                                                           " bytes is copied beyond them"));
  }
  address = variable->address + offset;
  return {};
}

}  // namespace torpor::executor
