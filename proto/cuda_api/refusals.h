#pragma once

#include <cstdint>

#include "proto/cuda_api/call_outcome.h"

// Reasons for not making a library's call; `code` is a status of the library.
namespace torpor::cuda_api {

CallStatus InvalidArguments(std::int32_t code, const char* symbol);
CallStatus ForeignMemory(std::int32_t code, const char* symbol);
// The call reads addresses in device memory, and the GPU's addresses differ from the client's.
CallStatus AddressesInMemory(std::int32_t code, const char* symbol);

}  // namespace torpor::cuda_api
