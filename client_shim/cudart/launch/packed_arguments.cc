#include "client_shim/cudart/launch/packed_arguments.h"

#include <cuda.h>

namespace torpor::shim {

bool ReadPackedArguments(void* const* extra, PackedArguments& packed) {
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
      packed.bytes = static_cast<const std::uint8_t*>(extra[1]);
    else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      packed.count = *static_cast<const std::size_t*>(extra[1]);
    else
      return false;
  }
  return (packed.bytes || packed.count == 0) && packed.count <= kMaxParameterBytes;
}

}  // namespace torpor::shim
