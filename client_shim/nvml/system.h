#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "client_shim/nvml/nvml_api.h"

// Versions and the texts of errors.
namespace torpor::shim {

// The version of NVIDIA's kernel module. NVML_ERROR_NOT_SUPPORTED if the GPUs are emulated.
nvmlReturn_t GetDriverVersion(char* version, unsigned length);
// The implemented version of NVML.
nvmlReturn_t GetInterfaceVersion(char* version, unsigned length);
// The version of cudaDriverGetVersion.
nvmlReturn_t GetCudaVersion(int* version);

// NVML's text for the error; never null.
const char* ErrorText(nvmlReturn_t result);

// The version in the kernel module's description: the first word of digits and dots.
std::optional<std::string> DriverVersionIn(std::string_view text);

}  // namespace torpor::shim
