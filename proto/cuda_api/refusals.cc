#include "proto/cuda_api/refusals.h"

#include "absl/strings/str_cat.h"

namespace torpor::cuda_api {

CallStatus InvalidArguments(std::int32_t code, const char* symbol) {
  return CallFailed(code, absl::StrCat(symbol, ": an argument is outside its function's rules"));
}

CallStatus ForeignMemory(std::int32_t code, const char* symbol) {
  return CallFailed(code, absl::StrCat(symbol,
                                       ": a pointer with its extent is not wholly inside device"
                                       " memory of this session"));
}

CallStatus AddressesInMemory(std::int32_t code, const char* symbol) {
  return CallFailed(code, absl::StrCat(symbol,
                                       ": an array of addresses in device memory needs"
                                       " address_mode: map; this node has translate"));
}

}  // namespace torpor::cuda_api
