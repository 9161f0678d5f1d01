#include "emulator/driver/module/linker.h"

#include <utility>

#include "emulator/driver/base/exec_error.h"
#include "emulator/driver/module/linked_module.h"
#include "nvidia/fatbin.h"

namespace torpor::emulator {

// Writes `message` to the log and returns `code`.
CUresult Linker::Refuse(CUresult code, const std::string& message) {
  log_.Tell(message);
  return code;
}

CUresult Linker::Add(CUjitInputType type, std::span<const std::byte> data,
                     const std::string& name) {
  switch (type) {
    case CU_JIT_INPUT_PTX:
      parts_.push_back({name, {reinterpret_cast<const char*>(data.data()), data.size()}});
      return CUDA_SUCCESS;
    case CU_JIT_INPUT_FATBINARY:
      return AddFatbin(data, name);
    case CU_JIT_INPUT_CUBIN:
      return Refuse(CUDA_ERROR_NO_BINARY_FOR_GPU,
                    name + ": a cubin holds machine code for a real GPU; the emulator needs PTX");
    default:
      return Refuse(
          CUDA_ERROR_NOT_SUPPORTED,
          name + ": only PTX and fatbins are linked, not inputs of type " + std::to_string(type));
  }
}

CUresult Linker::AddFatbin(std::span<const std::byte> data, const std::string& name) {
  // libcudadevrt has PTX for one architecture only, and NVIDIA's system calls behind it do not
  // exist here.
  if (IsDeviceRuntime(data)) return CUDA_SUCCESS;
  auto ptx = SelectPtx(data, compute_capability_);
  if (ptx.ok()) {
    parts_.push_back({name, std::move(ptx).value()});
    return CUDA_SUCCESS;
  }
  const bool has_none = ptx.failure().code == FatbinError::kNoPtx;
  return Refuse(has_none ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE,
                name + ": " + ptx.failure().message);
}

CUresult Linker::AddLibrary(const std::string& path) {
  if (path.find("libcudadevrt") != std::string::npos) return CUDA_SUCCESS;
  return Refuse(CUDA_ERROR_NOT_SUPPORTED, path + ": archives of device code are not supported");
}

DriverResult<std::span<char>> Linker::Complete() {
  if (const auto linked = CheckLink(parts_); !linked.ok()) {
    return Failure<CUresult>{
        Refuse(ToCuResult(linked.failure().code), "cannot link: " + linked.failure().message), {}};
  }
  linked_ = EncodeLinkedModule(parts_);
  return std::span<char>(linked_);
}

}  // namespace torpor::emulator
