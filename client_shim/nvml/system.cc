#include "client_shim/nvml/system.h"

#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>
#include <memory>

#include "client_shim/nvml/devices.h"
#include "client_shim/nvml/entry.h"

namespace torpor::shim {
namespace {

// Visible in containers too.
constexpr char kDriverFile[] = "/proc/driver/nvidia/version";

// The file's first 4096 bytes; empty if the file cannot be read.
std::string ReadFile(const char* path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "re"), &std::fclose);
  if (!file) return {};
  std::array<char, 4096> text{};
  return {text.data(), std::fread(text.data(), 1, text.size(), file.get())};
}

constexpr std::string_view kBlank = " \t\n";
constexpr std::string_view kNumbersAndDots = "0123456789.";

// Whether the word is a version such as 580.65.06.
bool IsVersion(std::string_view word) {
  return word.find('.') != word.npos && word.find_first_not_of(kNumbersAndDots) == word.npos;
}

struct ErrorName {
  nvmlReturn_t result;
  const char* text;
};

constexpr ErrorName kErrorNames[] = {
    {NVML_SUCCESS, "Success"},
    {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
    {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
    {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
    {NVML_ERROR_ALREADY_INITIALIZED, "Already Initialized"},
    {NVML_ERROR_NOT_FOUND, "Not Found"},
    {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    {NVML_ERROR_INSUFFICIENT_POWER, "Insufficient External Power"},
    {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {NVML_ERROR_TIMEOUT, "Timeout"},
    {NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue"},
    {NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
    {NVML_ERROR_CORRUPTED_INFOROM, "Corrupted infoROM"},
    {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
    {NVML_ERROR_RESET_REQUIRED, "GPU requires reset"},
    {NVML_ERROR_OPERATING_SYSTEM, "GPU access blocked by the operating system"},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch"},
    {NVML_ERROR_IN_USE, "In use by another client"},
    {NVML_ERROR_MEMORY, "Insufficient Memory"},
    {NVML_ERROR_NO_DATA, "No data"},
    {NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, "Not supported with ECC enabled"},
    {NVML_ERROR_INSUFFICIENT_RESOURCES, "Insufficient Resources"},
    {NVML_ERROR_FREQ_NOT_SUPPORTED, "Requested frequency not supported"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
    {NVML_ERROR_DEPRECATED, "Deprecated"},
    {NVML_ERROR_NOT_READY, "Not Ready"},
    {NVML_ERROR_GPU_NOT_FOUND, "No GPUs found"},
    {NVML_ERROR_INVALID_STATE, "Invalid state"},
    {NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, "Reset type not supported"},
    {NVML_ERROR_UNKNOWN, "Unknown Error"},
};

}  // namespace

std::optional<std::string> DriverVersionIn(std::string_view text) {
  while (!text.empty()) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(kBlank));
    if (IsVersion(word)) return std::string(word);
    text.remove_prefix(word.size());
  }
  return std::nullopt;
}

nvmlReturn_t GetDriverVersion(char* version, unsigned length) {
  // A machine with an emulated GPU may have NVIDIA's driver as well.
  if (LearntDevices()->is_emulated) return NVML_ERROR_NOT_SUPPORTED;
  const std::optional<std::string> found = DriverVersionIn(ReadFile(kDriverFile));
  return found ? CopyText(*found, version, length) : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t GetInterfaceVersion(char* version, unsigned length) {
  constexpr int kMajor = CUDART_VERSION / 1000;
  constexpr int kMinor = CUDART_VERSION % 1000 / 10;
  return CopyText(std::to_string(kMajor) + "." + std::to_string(kMinor), version, length);
}

nvmlReturn_t GetCudaVersion(int* version) {
  if (!version) return NVML_ERROR_INVALID_ARGUMENT;
  if (!LearntDevices()) TORPOR_NVML_TRY(LearnDevices());
  const auto learnt = LearntDevices();
  *version = learnt->devices.empty() ? 0 : learnt->devices.front().driver_version;
  return NVML_SUCCESS;
}

const char* ErrorText(nvmlReturn_t result) {
  for (const ErrorName& known : kErrorNames)
    if (known.result == result) return known.text;
  return "Unknown Error";
}

}  // namespace torpor::shim
