#include "server/executor/module/module_loader.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nvidia/fatbin.h"
#include "proto/wire/relocatable_module.h"
#include "server/executor/module/module_check.h"

namespace torpor::executor {
namespace {

// Owns a CUlinkState.
class LinkState {
 public:
  explicit LinkState(const Device& device) : device_(device) {}
  ~LinkState() {
    if (state_ != nullptr) device_.driver().LinkDestroy(state_);
  }
  LinkState(const LinkState&) = delete;
  LinkState& operator=(const LinkState&) = delete;

  absl::Status Create() {
    return device_.Status(device_.driver().LinkCreate(0, nullptr, nullptr, &state_),
                          "cuLinkCreate");
  }

  absl::Status Add(std::span<const std::uint8_t> fatbin, const std::string& name) {
    return device_.Status(
        device_.driver().LinkAddData(state_, CU_JIT_INPUT_FATBINARY,
                                     const_cast<std::uint8_t*>(fatbin.data()), fatbin.size(),
                                     name.c_str(), 0, nullptr, nullptr),
        "linking " + name);
  }

  // The returned code lives as long as the LinkState.
  absl::StatusOr<const void*> Complete() {
    void* code = nullptr;
    std::size_t bytes = 0;
    TORPOR_RETURN_IF_ERROR(
        device_.Status(device_.driver().LinkComplete(state_, &code, &bytes), "linking a module"));
    return code;
  }

 private:
  const Device& device_;
  CUlinkState state_ = nullptr;
};

absl::StatusOr<CUmodule> LoadCode(const Device& device, const void* code) {
  CUmodule module = nullptr;
  TORPOR_RETURN_IF_ERROR(device.Status(
      device.MakingRoom([&] { return device.driver().ModuleLoadData(&module, code); }),
      "loading a module"));
  return module;
}

absl::StatusOr<CUmodule> LinkParts(const Device& device,
                                   const std::vector<std::span<const std::uint8_t>>& parts) {
  LinkState link(device);
  TORPOR_RETURN_IF_ERROR(link.Create());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    TORPOR_RETURN_IF_ERROR(link.Add(parts[i], absl::StrCat("part ", i + 1)));
  }
  TORPOR_ASSIGN_OR_RETURN(const void* const code, link.Complete());
  return LoadCode(device, code);
}

// Returns null, without logging, if the fatbin has no code for the device.
absl::StatusOr<CUmodule> LoadLinked(const Device& device, std::span<const std::uint8_t> fatbin) {
  std::array<char, 256> log{};
  std::array<CUjit_option, 2> options = {CU_JIT_ERROR_LOG_BUFFER,
                                         CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
  CUmodule module = nullptr;
  const CUresult result = device.MakingRoom([&] {
    return device.driver().ModuleLoadDataEx(&module, fatbin.data(), options.size(), options.data(),
                                            values.data());
  });
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU) return nullptr;
  TORPOR_RETURN_IF_ERROR(device.Status(result, "loading a linked module"));
  return module;
}

absl::StatusOr<CUmodule> LoadRelocatable(const Device& device,
                                         const wire::RelocatableModule& relocatable) {
  TORPOR_RETURN_IF_ERROR(CheckFatbin(relocatable.linked));
  for (const auto part : relocatable.parts) TORPOR_RETURN_IF_ERROR(CheckFatbin(part));
  if (relocatable.linked.size() > kFatbinHeaderBytes) {
    TORPOR_ASSIGN_OR_RETURN(const CUmodule module, LoadLinked(device, relocatable.linked));
    if (module != nullptr) return module;
  }
  return LinkParts(device, relocatable.parts);
}

}  // namespace

absl::StatusOr<CUmodule> LoadModuleCode(const Device& device, std::span<const std::uint8_t> code) {
  wire::RelocatableModule relocatable;
  wire::Reader reader(code);
  reader(relocatable);
  if (reader.done() && relocatable.magic == wire::RelocatableModule::kMagic) {
    return LoadRelocatable(device, relocatable);
  }
  TORPOR_RETURN_IF_ERROR(CheckModule(code));
  return LoadCode(device, code.data());
}

}  // namespace torpor::executor
