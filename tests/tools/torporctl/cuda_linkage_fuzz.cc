#include "tools/torporctl/cuda_linkage.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  torpor::torporctl::LinkageWarning({data, size});
  return 0;
}
