// The driver API, alone and together with the runtime: one set of memory, streams and modules.
#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/e2e/programs/check_driver.h"

// out[i] = in[i] * factor, and how often that was done.
static const char kPtx[] = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .u32 runs = 3;
.visible .const .align 4 .f32 offsets[2] = {0f3F800000, 0f40000000};

.visible .entry Scale(.param .u64 out, .param .f32 factor, .param .u64 in)
{
  .reg .u64 %rd<5>;
  .reg .u32 %r<5>;
  .reg .f32 %f<5>;
  .reg .pred %p;
  ld.param.u64 %rd1, [out];
  ld.param.f32 %f1, [factor];
  ld.param.u64 %rd2, [in];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd1, %rd1, %rd3;
  add.u64 %rd2, %rd2, %rd3;
  ld.global.f32 %f2, [%rd2];
  ld.const.f32 %f3, [offsets+4];
  fma.rn.f32 %f2, %f2, %f1, %f3;
  st.global.f32 [%rd1], %f2;
  setp.ne.u32 %p, %r1, 0;
  @%p bra done;
  atom.global.add.u32 %r2, [runs], 1;
done:
  ret;
}
)";

__global__ void Fill(int* out, int value) { out[threadIdx.x] = value; }

constexpr unsigned kThreads = 64;

static void Before() {
  CUdevice device = -1;
  EXPECT_CU(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
  CU(cuInit(0));
  CUdeviceptr memory = 0;
  EXPECT_CU(cuMemAlloc(&memory, 4), CUDA_ERROR_INVALID_CONTEXT);
  const char* text = nullptr;
  CU(cuGetErrorName(CUDA_ERROR_INVALID_CONTEXT, &text));
  REQUIRE(std::strcmp(text, "CUDA_ERROR_INVALID_CONTEXT") == 0);
  CU(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  REQUIRE(std::strcmp(text, "out of memory") == 0);
}

static CUdevice Device() {
  int count = 0;
  CU(cuDeviceGetCount(&count));
  REQUIRE(count >= 1);
  CUdevice device = -1;
  CU(cuDeviceGet(&device, 0));
  char name[64];
  CU(cuDeviceGetName(name, sizeof name, device));
  std::size_t bytes = 0;
  CU(cuDeviceTotalMem(&bytes, device));
  int warp = 0;
  CU(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  REQUIRE(name[0] != '\0' && bytes > 0 && warp == 32);
  EXPECT_CU(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  return 0;
}

static void Contexts(CUdevice device) {
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  CUcontext current = nullptr;
  CU(cuCtxCreate(&first, nullptr, 0, device));
  CU(cuCtxCreate(&second, nullptr, CU_CTX_SCHED_SPIN, device));
  CU(cuCtxPopCurrent(&current));
  REQUIRE(current == second);
  CU(cuCtxGetCurrent(&current));
  REQUIRE(current == first);
  CU(cuCtxSetCurrent(second));
  CU(cuCtxDestroy(second));
  CU(cuCtxGetCurrent(&current));
  REQUIRE(current == nullptr);
  CU(cuCtxPushCurrent(first));
  CU(cuCtxDestroy(first));
  unsigned flags = 0;
  int active = 1;
  CU(cuDevicePrimaryCtxGetState(device, &flags, &active));
  REQUIRE(active == 0);
  CU(cuDevicePrimaryCtxRetain(&first, device));
  CU(cuCtxSetCurrent(first));
}

struct Vectors {
  CUdeviceptr in = 0;
  CUdeviceptr out = 0;
  std::vector<float> host = std::vector<float>(kThreads);

  Vectors() {
    for (unsigned i = 0; i < kThreads; ++i) host[i] = static_cast<float>(i);
    CU(cuMemAlloc(&in, kThreads * sizeof(float)));
    CU(cuMemAlloc(&out, kThreads * sizeof(float)));
    CU(cuMemcpyHtoD(in, host.data(), kThreads * sizeof(float)));
  }
  ~Vectors() {
    CU(cuMemFree(in));
    CU(cuMemFree(out));
  }
  void ExpectScaled(float factor) {
    std::vector<float> result(kThreads);
    CU(cuMemcpyDtoH(result.data(), out, kThreads * sizeof(float)));
    for (unsigned i = 0; i < kThreads; ++i) REQUIRE(result[i] == host[i] * factor + 2);
  }
};

static void Launches(CUfunction scale, CUstream stream) {
  Vectors vectors;
  float factor = 2;
  void* arguments[] = {&vectors.out, &factor, &vectors.in};
  CU(cuLaunchKernel(scale, 1, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr));
  CU(cuStreamSynchronize(stream));
  vectors.ExpectScaled(2);

  struct {
    CUdeviceptr out;
    float factor;
    CUdeviceptr in;
  } packed = {vectors.out, 5, vectors.in};
  std::size_t bytes = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CU(cuLaunchKernel(scale, 1, 1, 1, kThreads, 1, 1, 0, stream, nullptr, extra));
  CU(cuCtxSynchronize());
  vectors.ExpectScaled(5);

  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kThreads;
  config.blockDimY = config.blockDimZ = 1;
  factor = 7;
  CU(cuLaunchKernelEx(&config, scale, arguments, nullptr));
  vectors.ExpectScaled(7);
  EXPECT_CU(cuLaunchKernel(scale, 1, 1, 1, 4096, 1, 1, 0, stream, arguments, nullptr),
            CUDA_ERROR_INVALID_VALUE);
}

static void Functions(CUfunction scale) {
  int threads = 0;
  CU(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, scale));
  REQUIRE(threads >= 256);
  std::size_t offset = 0;
  std::size_t bytes = 0;
  CU(cuFuncGetParamInfo(scale, 2, &offset, &bytes));
  REQUIRE(offset == 16 && bytes == 8);
  EXPECT_CU(cuFuncGetParamInfo(scale, 3, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
  int grid = 0;
  int block = 0;
  CU(cuOccupancyMaxPotentialBlockSize(&grid, &block, scale, nullptr, 0, 0));
  REQUIRE(grid >= 1 && block >= 32);
  const char* name = nullptr;
  CU(cuFuncGetName(&name, scale));
  REQUIRE(std::strcmp(name, "Scale") == 0);
}

// What is said about a function that there is not.
static void NoFunction(CUstream stream) {
  EXPECT_CU(cuLaunchKernel(nullptr, 1, 1, 1, 4096, 1, 1, 0, stream, nullptr, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  int number = 0;
  int other = 0;
  EXPECT_CU(cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuOccupancyMaxPotentialBlockSize(&number, &other, nullptr, nullptr, 0, 0),
            CUDA_ERROR_INVALID_HANDLE);
  std::size_t offset = 0;
  std::size_t bytes = 0;
  EXPECT_CU(cuFuncGetParamInfo(nullptr, 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
  const char* name = nullptr;
  EXPECT_CU(cuFuncGetName(&name, nullptr), CUDA_ERROR_INVALID_VALUE);
}

static void Variables(CUmodule module, unsigned runs) {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  CU(cuModuleGetGlobal(&address, &bytes, module, "runs"));
  REQUIRE(bytes == sizeof runs);
  unsigned value = 0;
  CU(cuMemcpyDtoH(&value, address, sizeof value));
  REQUIRE(value == runs);
  CU(cuModuleGetGlobal(nullptr, &bytes, module, "offsets"));
  REQUIRE(bytes == 2 * sizeof(float));
  EXPECT_CU(cuModuleGetGlobal(&address, &bytes, module, "nothing"), CUDA_ERROR_NOT_FOUND);
}

static void Modules() {
  CUmodule module = nullptr;
  CU(cuModuleLoadData(&module, kPtx));
  CUfunction scale = nullptr;
  CU(cuModuleGetFunction(&scale, module, "Scale"));
  CUfunction nothing = scale;
  EXPECT_CU(cuModuleGetFunction(&nothing, module, "Nothing"), CUDA_ERROR_NOT_FOUND);
  REQUIRE(nothing == nullptr);
  CUstream stream = nullptr;
  CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Variables(module, 3);
  Launches(scale, stream);
  Functions(scale);
  NoFunction(stream);
  Variables(module, 6);
  CU(cuStreamDestroy(stream));
  CU(cuModuleUnload(module));

  char log[512] = "?";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  EXPECT_CU(
      cuModuleLoadDataEx(&module, ".version 7.0\n.target sm_70\nnonsense", 2, options, values),
      CUDA_ERROR_INVALID_PTX);
  REQUIRE(std::strlen(log) > 1);
}

static void Links() {
  CUlinkState link = nullptr;
  CU(cuLinkCreate(0, nullptr, nullptr, &link));
  CU(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kPtx), sizeof kPtx, "scale", 0,
                   nullptr, nullptr));
  void* image = nullptr;
  std::size_t bytes = 0;
  CU(cuLinkComplete(link, &image, &bytes));
  CUmodule module = nullptr;
  CU(cuModuleLoadData(&module, image));
  CU(cuLinkDestroy(link));
  CU(cuModuleUnload(module));
}

static void Memory() {
  constexpr std::size_t kCount = 100;
  CUdeviceptr memory = 0;
  CU(cuMemAlloc(&memory, kCount * sizeof(unsigned)));
  CU(cuMemsetD32(memory, 0xdeadbeef, kCount));
  CU(cuMemsetD16(memory + 8, 0x1234, 2));
  std::vector<unsigned> host(kCount);
  CU(cuMemcpyDtoH(host.data(), memory, kCount * sizeof(unsigned)));
  REQUIRE(host[0] == 0xdeadbeef && host[2] == 0x12341234 && host[kCount - 1] == 0xdeadbeef);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CU(cuMemGetAddressRange(&base, &bytes, memory + 40));
  REQUIRE(base == memory && bytes >= kCount * sizeof(unsigned));
  unsigned type = 0;
  CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
  REQUIRE(type == CU_MEMORYTYPE_DEVICE);

  // Two columns of a 4 by 3 matrix.
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  for (unsigned i = 0; i < kCount; ++i) host[i] = i;
  copy.srcHost = host.data();
  copy.srcPitch = 4 * sizeof(unsigned);
  copy.srcXInBytes = sizeof(unsigned);
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.WidthInBytes = 2 * sizeof(unsigned);
  copy.Height = 3;
  CU(cuMemcpy2D(&copy));
  CU(cuMemcpyDtoH(host.data(), memory, 6 * sizeof(unsigned)));
  const unsigned expected[] = {1, 2, 5, 6, 9, 10};
  REQUIRE(std::memcmp(host.data(), expected, sizeof expected) == 0);
  CU(cuMemFree(memory));
}

static void VirtualMemory(CUdevice device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  std::size_t granule = 0;
  CU(cuMemGetAllocationGranularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr address = 0;
  CU(cuMemAddressReserve(&address, 2 * granule, 0, 0, 0));
  for (int i = 0; i < 2; ++i) {
    CUmemGenericAllocationHandle handle = 0;
    CU(cuMemCreate(&handle, granule, &properties, 0));
    CU(cuMemMap(address + static_cast<std::size_t>(i) * granule, granule, 0, handle, 0));
    CU(cuMemRelease(handle));
  }
  CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CU(cuMemSetAccess(address, 2 * granule, &access, 1));
  CU(cuMemsetD8(address + granule - 8, 0xab, 16));
  std::uint64_t words[2];
  CU(cuMemcpyDtoH(words, address + granule - 8, sizeof words));
  REQUIRE(words[0] == 0xabababababababab && words[1] == words[0]);
  CU(cuMemUnmap(address, 2 * granule));
  CU(cuMemAddressFree(address, 2 * granule));
}

static void CUDA_CB Count(void* counter) { ++*static_cast<int*>(counter); }

// What either API makes the other uses.
// What a process shares it does not open itself (processes.cu has two).
static void Sharing() {
  CUdeviceptr memory = 0;
  CU(cuMemAlloc(&memory, 4096));
  CUipcMemHandle memory_handle;
  CU(cuIpcGetMemHandle(&memory_handle, memory));
  int is_shareable = 0;
  CU(cuPointerGetAttribute(&is_shareable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, memory));
  REQUIRE((is_shareable & 0xff) == 1);
  CUdeviceptr opened = 0;
  EXPECT_CU(cuIpcOpenMemHandle(&opened, memory_handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CU(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);
  CU(cuMemFree(memory));
  CUevent event = nullptr;
  CU(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  CUipcEventHandle event_handle;
  CU(cuIpcGetEventHandle(&event_handle, event));
  CU(cuEventRecord(event, nullptr));
  CU(cuEventSynchronize(event));
  CUevent opened_event = nullptr;
  EXPECT_CU(cuIpcOpenEventHandle(&opened_event, event_handle), CUDA_ERROR_INVALID_CONTEXT);
  CU(cuEventDestroy(event));
}

static void WithTheRuntime() {
  int* memory = nullptr;
  CUDA(cudaMalloc(&memory, kThreads * sizeof(int)));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  cudaKernel_t fill = nullptr;
  CUDA(cudaGetKernel(&fill, reinterpret_cast<const void*>(&Fill)));
  int value = 41;
  void* arguments[] = {&memory, &value};
  CUevent event = nullptr;
  CU(cuEventCreate(&event, CU_EVENT_DEFAULT));
  CU(cuLaunchKernel(reinterpret_cast<CUfunction>(fill), 1, 1, 1, kThreads, 1, 1, 0, stream,
                    arguments, nullptr));
  int count = 0;
  CU(cuLaunchHostFunc(stream, Count, &count));
  CUDA(cudaEventRecord(event, stream));
  CUDA(cudaEventSynchronize(event));
  CUDA(cudaStreamSynchronize(stream));
  REQUIRE(count == 1);
  int result = 0;
  CU(cuMemcpyDtoH(&result, reinterpret_cast<CUdeviceptr>(memory + kThreads - 1), sizeof result));
  REQUIRE(result == 41);
  CU(cuEventDestroy(event));
  CU(cuStreamDestroy(stream));
  CUDA(cudaFree(memory));
  // The driver's errors are not the runtime's.
  EXPECT_CU(cuMemFree(1), CUDA_ERROR_INVALID_VALUE);
  CUDA(cudaGetLastError());
}

static void Symbols() {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  CU(cuGetProcAddress("cuMemAlloc", &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  REQUIRE(status == CU_GET_PROC_ADDRESS_SUCCESS);
  CUdeviceptr memory = 0;
  CU(reinterpret_cast<CUresult (*)(CUdeviceptr*, std::size_t)>(function)(&memory, 16));
  CU(cuMemFree(memory));
  CU(cuGetProcAddress("cuNothing", &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  REQUIRE(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND && function == nullptr);
}

static void SymbolsOfTheRuntime() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status{};
  CUDA(cudaGetDriverEntryPointByVersion("cuDeviceGetCount", &function, 12000, cudaEnableDefault,
                                        &status));
  REQUIRE(status == cudaDriverEntryPointSuccess);
  int count = 0;
  CU(reinterpret_cast<CUresult (*)(int*)>(function)(&count));
  REQUIRE(count > 0);
  CUDA(cudaGetDriverEntryPointByVersion("cuNothing", &function, 12000, cudaEnableDefault, &status));
  REQUIRE(status == cudaDriverEntryPointSymbolNotFound && function == nullptr);
  EXPECT_CUDA(cudaGetDriverEntryPointByVersion(nullptr, &function, 12000, 0, &status),
              cudaErrorInvalidValue);
  cudaGetLastError();
}

int main() {
  Before();
  const CUdevice device = Device();
  Contexts(device);
  Modules();
  Links();
  Memory();
  VirtualMemory(device);
  Symbols();
  SymbolsOfTheRuntime();
  Sharing();
  WithTheRuntime();
  CU(cuDevicePrimaryCtxRelease(device));
  return Pass();
}
