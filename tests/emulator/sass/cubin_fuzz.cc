#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/sass/cubin.h"
#include "emulator/sass/kernel_ptx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto cubin =
      torpor::sass::ReadCubin(std::as_bytes(std::span<const std::uint8_t>(data, size)));
  if (!cubin.ok()) return 0;
  for (const auto& kernel : cubin->kernels) (void)torpor::sass::KernelPtx(*cubin, kernel, "");
  return 0;
}
