// Modules of arbitrary bytes: the driver behind trusts whatever reaches it.
#include <cstddef>
#include <cstdint>

#include "server/executor/module/module_loader.h"
#include "tests/server/executor/gpu/fake_cuda.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::executor;
  const FakeCuda cuda;
  const auto device = Device::Open(cuda.driver(), 0);
  (void)LoadModuleCode(**device, {data, size}).ok();
  return 0;
}
