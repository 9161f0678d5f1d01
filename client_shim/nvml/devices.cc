#include "client_shim/nvml/devices.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/uuid.h"
#include "client_shim/core/client_core.h"
#include "client_shim/cudart/device/device_attributes.h"
#include "client_shim/cudart/device/pci_bus_id.h"
#include "client_shim/nvml/entry.h"

namespace torpor::shim {
namespace {

using Devices = std::shared_ptr<const wire::InquiryReply>;

// The daemon's last answer. Readers share the answer, which stays valid after a newer one.
struct Learnt {
  std::mutex mutex;
  Devices devices;  // guarded by mutex
};

Learnt& TheLearnt() {
  static auto* const learnt = new Learnt();
  return *learnt;
}

std::size_t Count() {
  const Devices learnt = LearntDevices();
  return learnt ? learnt->devices.size() : 0;
}

// Handles begin at 1, so that no handle is null.
nvmlDevice_t HandleOf(std::size_t number) {
  return reinterpret_cast<nvmlDevice_t>(static_cast<std::uintptr_t>(number + 1));
}

std::string UuidOf(const wire::DeviceDescription& device) {
  return FormatUuid({reinterpret_cast<const char*>(device.uuid.data()), device.uuid.size()});
}

// Finds the first device that `is_wanted` accepts; NVML_ERROR_NOT_FOUND if there is none.
nvmlReturn_t FindWhere(const std::function<bool(const wire::DeviceDescription&)>& is_wanted,
                       nvmlDevice_t* device) {
  for (std::size_t i = 0; i < Count(); ++i) {
    if (!is_wanted(*FindDevice(HandleOf(i)))) continue;
    *device = HandleOf(i);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

}  // namespace

nvmlReturn_t LearnDevices() {
  auto reply = std::make_shared<wire::InquiryReply>();
  TORPOR_NVML_TRY(ToNvml(torpor_client_core()->Inquire(*reply)));
  const std::lock_guard lock(TheLearnt().mutex);
  TheLearnt().devices = std::move(reply);
  return NVML_SUCCESS;
}

std::shared_ptr<const wire::InquiryReply> LearntDevices() {
  const std::lock_guard lock(TheLearnt().mutex);
  return TheLearnt().devices;
}

std::shared_ptr<const wire::DeviceDescription> FindDevice(nvmlDevice_t device) {
  const auto value = reinterpret_cast<std::uintptr_t>(device);
  const Devices learnt = LearntDevices();
  if (!learnt || value == 0 || value > learnt->devices.size()) return nullptr;
  return {learnt, &learnt->devices[value - 1]};
}

int NumberOf(nvmlDevice_t device) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}

nvmlReturn_t GetCount(unsigned* count) {
  if (!count) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(Count());
  return NVML_SUCCESS;
}

nvmlReturn_t FindByIndex(unsigned index, nvmlDevice_t* device) {
  if (!device || index >= Count()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = HandleOf(index);
  return NVML_SUCCESS;
}

nvmlReturn_t FindByUuid(const char* uuid, nvmlDevice_t* device) {
  if (!uuid || !device) return NVML_ERROR_INVALID_ARGUMENT;
  return FindWhere([&](const auto& candidate) { return UuidOf(candidate) == uuid; }, device);
}

nvmlReturn_t FindByPciBusId(const char* id, nvmlDevice_t* device) {
  const std::optional<PciBusId> wanted = id ? ParsePciBusId(id) : std::nullopt;
  if (!wanted || !device) return NVML_ERROR_INVALID_ARGUMENT;
  return FindWhere(
      [&](const auto& candidate) { return ParsePciBusId(candidate.pci_bus_id.c_str()) == wanted; },
      device);
}

nvmlReturn_t GetIndex(nvmlDevice_t device, unsigned* index) {
  if (!FindDevice(device) || !index) return NVML_ERROR_INVALID_ARGUMENT;
  *index = static_cast<unsigned>(NumberOf(device));
  return NVML_SUCCESS;
}

nvmlReturn_t GetName(nvmlDevice_t device, char* name, unsigned length) {
  const auto described = FindDevice(device);
  return described ? CopyText(described->name, name, length) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t GetUuid(nvmlDevice_t device, char* uuid, unsigned length) {
  const auto described = FindDevice(device);
  return described ? CopyText(UuidOf(*described), uuid, length) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t GetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* info) {
  const auto described = FindDevice(device);
  if (!described || !info) return NVML_ERROR_INVALID_ARGUMENT;
  const std::optional<PciBusId> id = ParsePciBusId(described->pci_bus_id.c_str());
  if (!id) return NVML_ERROR_NOT_SUPPORTED;
  *info = {};
  info->domain = id->domain;
  info->bus = id->bus;
  info->device = id->device;
  info->pciDeviceId = static_cast<unsigned>(AttributeOf(*described, cudaDevAttrGpuPciDeviceId));
  info->pciSubSystemId =
      static_cast<unsigned>(AttributeOf(*described, cudaDevAttrGpuPciSubsystemId));
  std::snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04X:%02X:%02X.0", id->domain,
                id->bus, id->device);
  std::snprintf(info->busId, sizeof info->busId, "%08X:%02X:%02X.0", id->domain, id->bus,
                id->device);
  return NVML_SUCCESS;
}

nvmlReturn_t GetComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  const auto described = FindDevice(device);
  if (!described || !major || !minor) return NVML_ERROR_INVALID_ARGUMENT;
  *major = AttributeOf(*described, cudaDevAttrComputeCapabilityMajor);
  *minor = AttributeOf(*described, cudaDevAttrComputeCapabilityMinor);
  return NVML_SUCCESS;
}

nvmlReturn_t CopyText(const std::string& text, char* out, unsigned length) {
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

}  // namespace torpor::shim
