#pragma once

#include <cstdint>

#include "proto/cuda_api/call_outcome.h"

// Why the call of a library is not made; `code` is of the library's own statuses.
namespace torpor::cuda_api {

CallStatus NonsenseArguments(std::int32_t code, const char* symbol);
CallStatus ForeignMemory(std::int32_t code, const char* symbol);
// It reads addresses in device memory, which are the client's where the GPU knows others.
CallStatus AddressesInMemory(std::int32_t code, const char* symbol);

}  // namespace torpor::cuda_api
