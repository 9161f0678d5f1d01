#include "tests/server/executor/gpu/fake_cuda.h"

#include <cstring>

#include "base/check.h"
#include "tests/server/executor/gpu/fake_driver_calls.h"

namespace torpor::executor {

// The device, its context and the driver itself.
struct FakeDriverCalls::Devices {
  static CUresult Init(unsigned) { return CUDA_SUCCESS; }
  static CUresult GetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
  static CUresult GetErrorName(CUresult, const char** name) {
    return *name = "CUDA_ERROR_FAKE", CUDA_SUCCESS;
  }
  static CUresult RegisterLog(CUlogsCallback call, void* data, CUlogsCallbackHandle*) {
    fake->hear_ = [call, data](std::string text) {
      call(data, CU_LOG_LEVEL_ERROR, text.data(), text.size());
    };
    return CUDA_SUCCESS;
  }
  static CUresult GetCount(int* count) { return *count = 1, CUDA_SUCCESS; }
  static CUresult Get(CUdevice* device, int) { return *device = 0, CUDA_SUCCESS; }
  static CUresult GetName(char* name, int bytes, CUdevice) {
    std::strncpy(name, "Fake", static_cast<std::size_t>(bytes));
    return CUDA_SUCCESS;
  }
  static CUresult GetUuid(CUuuid* uuid, CUdevice) { return *uuid = {}, CUDA_SUCCESS; }
  static CUresult TotalMem(std::size_t* bytes, CUdevice) {
    return *bytes = std::size_t{1} << 30, CUDA_SUCCESS;
  }
  static CUresult GetAttribute(int* value, CUdevice_attribute, CUdevice) {
    return *value = 1, CUDA_SUCCESS;
  }
  static CUresult GetBusId(char* id, int, CUdevice) { return *id = 0, CUDA_SUCCESS; }
  static CUresult SetContextFlags(CUdevice, unsigned) { return CUDA_SUCCESS; }
  static CUresult Retain(CUcontext* context, CUdevice) { return *context = nullptr, CUDA_SUCCESS; }
  static CUresult Release(CUdevice) { return CUDA_SUCCESS; }
  static CUresult SetCurrent(CUcontext) { return CUDA_SUCCESS; }
  static CUresult GetLimit(std::size_t* value, CUlimit limit) {
    const auto found = fake->limits_.find(limit);
    return *value = found == fake->limits_.end() ? 1024 : found->second, Ok();
  }
  static CUresult SetLimit(CUlimit limit, std::size_t value) {
    if (fake->limits_are_fixed_) return CUDA_ERROR_INVALID_VALUE;
    fake->limits_[limit] = value;
    return Ok();
  }
};

void FakeDriverCalls::AddDevices(CudaDriver& driver) {
  driver.Init = Devices::Init;
  driver.DriverGetVersion = Devices::GetVersion;
  driver.GetErrorName = Devices::GetErrorName;
  driver.GetErrorString = Devices::GetErrorName;
  driver.LogsRegisterCallback = Devices::RegisterLog;
  driver.DeviceGetCount = Devices::GetCount;
  driver.DeviceGet = Devices::Get;
  driver.DeviceGetName = Devices::GetName;
  driver.DeviceGetUuid = Devices::GetUuid;
  driver.DeviceTotalMem = Devices::TotalMem;
  driver.DeviceGetAttribute = Devices::GetAttribute;
  driver.DeviceGetPciBusId = Devices::GetBusId;
  driver.DevicePrimaryCtxSetFlags = Devices::SetContextFlags;
  driver.DevicePrimaryCtxRetain = Devices::Retain;
  driver.DevicePrimaryCtxRelease = Devices::Release;
  driver.CtxSetCurrent = Devices::SetCurrent;
  driver.CtxGetLimit = Devices::GetLimit;
  driver.CtxSetLimit = Devices::SetLimit;
}

FakeCuda::FakeCuda() {
  TORPOR_CHECK(FakeDriverCalls::fake == nullptr);
  FakeDriverCalls::fake = this;
  FakeDriverCalls::AddDevices(driver_);
  FakeDriverCalls::AddMemory(driver_);
  FakeDriverCalls::AddCopies(driver_);
  FakeDriverCalls::AddArrays(driver_);
  FakeDriverCalls::AddStreams(driver_);
  FakeDriverCalls::AddModules(driver_);
  FakeDriverCalls::AddGraphs(driver_);
}

FakeCuda::~FakeCuda() { FakeDriverCalls::fake = nullptr; }

}  // namespace torpor::executor
