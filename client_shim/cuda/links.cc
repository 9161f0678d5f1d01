#include "client_shim/cuda/links.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "client_shim/cuda/entry.h"
#include "client_shim/cuda/modules.h"
#include "client_shim/cudart/module/jit_options.h"
#include "client_shim/cudart/module/module_code.h"

namespace torpor::shim {
namespace {

struct Link {
  std::vector<std::uint8_t> code;
};

// The program's open links by handle. Thread-safe.
class Links {
 public:
  CUlinkState Add() {
    auto link = std::make_shared<Link>();
    const auto handle = reinterpret_cast<CUlinkState>(link.get());
    std::lock_guard lock(mutex_);
    links_.emplace(handle, std::move(link));
    return handle;
  }
  // Null for an unknown handle.
  std::shared_ptr<Link> Find(CUlinkState handle) {
    std::lock_guard lock(mutex_);
    const auto found = links_.find(handle);
    return found == links_.end() ? nullptr : found->second;
  }
  bool Remove(CUlinkState handle) {
    std::lock_guard lock(mutex_);
    return links_.erase(handle) > 0;
  }

 private:
  std::mutex mutex_;
  std::map<CUlinkState, std::shared_ptr<Link>> links_;
};

Links& TheLinks() {
  static auto* const links = new Links();
  return *links;
}

// Whether the executor's driver loads the type of input without a linker.
bool IsLoadable(CUjitInputType type) {
  return type == CU_JIT_INPUT_PTX || type == CU_JIT_INPUT_CUBIN || type == CU_JIT_INPUT_FATBINARY;
}

CUresult SetInput(CUlinkState handle, CUjitInputType type, std::vector<std::uint8_t> code) {
  const std::shared_ptr<Link> link = TheLinks().Find(handle);
  if (!link) return CUDA_ERROR_INVALID_HANDLE;
  if (!IsLoadable(type)) return Refuse("cuLink of objects and libraries");
  if (!link->code.empty()) return Refuse("cuLink of several inputs");
  link->code = std::move(code);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CreateLink(unsigned option_count, CUjit_option* options, void** values,
                    CUlinkState* link) {
  if (!link || (option_count > 0 && (!options || !values))) return CUDA_ERROR_INVALID_VALUE;
  JitOptions(AsRuntime(options), values, option_count).Report({});
  *link = TheLinks().Add();
  return CUDA_SUCCESS;
}

CUresult AddLinkData(CUlinkState link, CUjitInputType type, void* data, std::size_t bytes) {
  if (!data || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto* const begin = static_cast<const std::uint8_t*>(data);
  std::vector<std::uint8_t> code(begin, begin + bytes);
  code.push_back(0);  // PTX may come without the NUL that ends it
  return SetInput(link, type, std::move(code));
}

CUresult AddLinkFile(CUlinkState link, CUjitInputType type, const char* path) {
  std::vector<std::uint8_t> code;
  TORPOR_CU_TRY(ReadModuleFile(path, code));
  return SetInput(link, type, std::move(code));
}

CUresult CompleteLink(CUlinkState handle, void** code, std::size_t* bytes) {
  if (!code) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<Link> link = TheLinks().Find(handle);
  if (!link) return CUDA_ERROR_INVALID_HANDLE;
  if (link->code.empty()) return CUDA_ERROR_INVALID_VALUE;
  *code = link->code.data();
  if (bytes) *bytes = link->code.size();
  return CUDA_SUCCESS;
}

CUresult DestroyLink(CUlinkState link) {
  return TheLinks().Remove(link) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace torpor::shim
