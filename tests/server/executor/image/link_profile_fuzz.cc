// Whatever lies in a link's file is its curve or is refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/executor/image/link_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::executor;
  const LinkIdentity link = {"GPU", "0", 1};
  const auto curve = DecodeLinkProfile({reinterpret_cast<const char*>(data), size}, link);
  if (!curve.ok()) return 0;
  const auto again = DecodeLinkProfile(EncodeLinkProfile(link, *curve), link);
  if (!again.ok() || *again != *curve || !torpor::memory::FindElbow(*curve)) std::abort();
  return 0;
}
