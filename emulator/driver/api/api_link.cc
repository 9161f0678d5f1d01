// Linking of relocatable device code.
#include <fstream>
#include <iterator>
#include <string>

#include "emulator/driver/api/api.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

// Calls `body(Linker&)`, or returns CUDA_ERROR_INVALID_HANDLE.
template <typename Body>
CUresult OnLinker(CUlinkState state, Body&& body, const char* name = __builtin_FUNCTION()) {
  return Call(
      [&](Driver& driver) -> CUresult {
        Linker* linker = driver.linkers().Get(state);
        return linker == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(*linker);
      },
      name);
}

// Reads a file and adds its content. Libraries are added by name.
CUresult AddFile(Linker& linker, CUjitInputType type, const std::string& path) {
  if (type == CU_JIT_INPUT_LIBRARY) return linker.AddLibrary(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::string data{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return linker.Add(type, std::as_bytes(std::span(data)), path);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values,
                                 CUlinkState* state) {
  return InContext([&](Context& context) {
    if (state == nullptr || (count != 0 && (options == nullptr || values == nullptr))) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *state = Driver::Get().linkers().Create(std::make_shared<Linker>(
        context.device().spec().compute_capability, JitLog(count, options, values)));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size,
                                  const char* name, unsigned int, CUjit_option*, void**) {
  return OnLinker(state, [&](Linker& linker) {
    if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    return linker.Add(type, {static_cast<const std::byte*>(data), size},
                      name == nullptr ? "<unnamed>" : name);
  });
}

CUresult CUDAAPI cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path,
                                  unsigned int, CUjit_option*, void**) {
  return OnLinker(state, [&](Linker& linker) {
    return path == nullptr ? CUDA_ERROR_INVALID_VALUE : AddFile(linker, type, path);
  });
}

CUresult CUDAAPI cuLinkComplete(CUlinkState state, void** cubin, size_t* size) {
  return OnLinker(state, [&](Linker& linker) {
    if (cubin == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto image = linker.Complete();
    if (!image.ok()) return image.failure().code;
    *cubin = image->data();
    if (size != nullptr) *size = image->size();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState state) {
  return Call([&](Driver& driver) {
    return driver.linkers().Destroy(state) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

}  // extern "C"
