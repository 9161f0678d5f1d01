#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "client_shim/nvml/nvml_api.h"

// Versions and the texts of errors.
namespace torpor::shim {

// Of NVIDIA's kernel module. NVML_ERROR_NOT_SUPPORTED where there is none: the GPUs are emulated.
nvmlReturn_t GetDriverVersion(char* version, unsigned length);
// Of the interface that this library is written to.
nvmlReturn_t GetInterfaceVersion(char* version, unsigned length);
// As cudaDriverGetVersion tells it.
nvmlReturn_t GetCudaVersion(int* version);

const char* ErrorText(nvmlReturn_t result);

// The version in what the kernel module says of itself, the first word that is numbers and dots.
std::optional<std::string> DriverVersionIn(std::string_view text);

}  // namespace torpor::shim
