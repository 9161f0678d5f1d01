#pragma once

#include <memory>
#include <string>

#include "client_shim/nvml/nvml_api.h"
#include "proto/wire/control_messages.h"

// Which devices there are and what they are: the function's, numbered as CUDA numbers them where
// CUDA_VISIBLE_DEVICES hides none. A handle is a device's number and one.
namespace torpor::shim {

// Asks the daemon.
nvmlReturn_t LearnDevices();
// What it said last; null: it was never asked.
std::shared_ptr<const wire::InquiryReply> LearntDevices();

// Null if it is none of the devices.
std::shared_ptr<const wire::DeviceDescription> FindDevice(nvmlDevice_t device);
// Of one that FindDevice finds.
int NumberOf(nvmlDevice_t device);

nvmlReturn_t GetCount(unsigned* count);
nvmlReturn_t FindByIndex(unsigned index, nvmlDevice_t* device);
nvmlReturn_t FindByUuid(const char* uuid, nvmlDevice_t* device);
nvmlReturn_t FindByPciBusId(const char* id, nvmlDevice_t* device);

nvmlReturn_t GetIndex(nvmlDevice_t device, unsigned* index);
nvmlReturn_t GetName(nvmlDevice_t device, char* name, unsigned length);
nvmlReturn_t GetUuid(nvmlDevice_t device, char* uuid, unsigned length);
nvmlReturn_t GetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* info);
nvmlReturn_t GetComputeCapability(nvmlDevice_t device, int* major, int* minor);

// NVML_ERROR_INSUFFICIENT_SIZE, and nothing written, if the text and its end do not fit.
nvmlReturn_t CopyText(const std::string& text, char* out, unsigned length);

}  // namespace torpor::shim
