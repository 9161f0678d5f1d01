#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "emulator/ptx/parser.h"
#include "emulator/sass/cubin.h"
#include "emulator/sass/kernel_ptx.h"
#include "emulator/sass/lift.h"

// Any file is a cubin or is not; any kernel of one becomes PTX or is not translated.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMaxKernels = 16;
  const auto cubin =
      torpor::sass::ReadCubin(std::as_bytes(std::span<const std::uint8_t>(data, size)));
  if (!cubin.ok()) return 0;
  std::size_t lifted = 0;
  for (const auto& kernel : cubin->kernels) {
    if (++lifted > kMaxKernels) break;
    const auto body = torpor::sass::LiftKernel(*cubin, kernel);
    if (body.ok()) (void)torpor::ptx::Parse(torpor::sass::KernelPtx(*cubin, kernel, *body));
  }
  return 0;
}
