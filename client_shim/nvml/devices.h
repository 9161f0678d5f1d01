#pragma once

#include <memory>
#include <string>

#include "client_shim/nvml/nvml_api.h"
#include "proto/wire/control_messages.h"

// The function's devices and their properties. Numbers are CUDA's without CUDA_VISIBLE_DEVICES; a
// handle is a device's number plus one.
namespace torpor::shim {

// Asks the daemon for the devices. NVML's error if the daemon cannot be asked.
nvmlReturn_t LearnDevices();
// The daemon's last answer; null if the daemon was never asked.
std::shared_ptr<const wire::InquiryReply> LearntDevices();

// The device's description; null for an unknown handle.
std::shared_ptr<const wire::DeviceDescription> FindDevice(nvmlDevice_t device);
// The number of a device that FindDevice finds.
int NumberOf(nvmlDevice_t device);

// Find devices by number, UUID (GPU-...) or PCI bus id. NVML_ERROR_NOT_FOUND or
// NVML_ERROR_INVALID_ARGUMENT if there is no such device.
nvmlReturn_t GetCount(unsigned* count);
nvmlReturn_t FindByIndex(unsigned index, nvmlDevice_t* device);
nvmlReturn_t FindByUuid(const char* uuid, nvmlDevice_t* device);
nvmlReturn_t FindByPciBusId(const char* id, nvmlDevice_t* device);

// Properties from the daemon's last answer. `length` is the room for a text and its NUL in bytes.
nvmlReturn_t GetIndex(nvmlDevice_t device, unsigned* index);
nvmlReturn_t GetName(nvmlDevice_t device, char* name, unsigned length);
nvmlReturn_t GetUuid(nvmlDevice_t device, char* uuid, unsigned length);
nvmlReturn_t GetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* info);
nvmlReturn_t GetComputeCapability(nvmlDevice_t device, int* major, int* minor);

// Copies `text` with a terminating NUL. If `length` bytes are too few, writes nothing and returns
// NVML_ERROR_INSUFFICIENT_SIZE.
nvmlReturn_t CopyText(const std::string& text, char* out, unsigned length);

}  // namespace torpor::shim
