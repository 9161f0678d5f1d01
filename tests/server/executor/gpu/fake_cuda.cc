#include "tests/server/executor/gpu/fake_cuda.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

#include "base/check.h"
#include "tests/server/executor/gpu/module_walk.h"

namespace torpor::executor {
namespace {

FakeCuda* fake = nullptr;
std::mutex chunk_mutex;

void* Pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

// The C functions of the driver. Kernels of the fake are named "record" and take one word.
struct FakeDriverFunctions {
  static CUresult Ok() { return fake->broken_; }

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
  static CUresult FuncLoad(CUfunction) { return Ok(); }

  static CUresult Granularity(std::size_t* bytes, const CUmemAllocationProp*,
                              CUmemAllocationGranularity_flags) {
    return *bytes = FakeCuda::kChunk, Ok();
  }
  static CUresult Create(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                         const CUmemAllocationProp*, unsigned long long) {
    std::lock_guard lock(chunk_mutex);
    if (fake->chunks_left_-- <= 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = fake->next_chunk_++;
    const int file = memfd_create("chunk", MFD_CLOEXEC);
    TORPOR_CHECK(ftruncate(file, static_cast<off_t>(bytes)) == 0);
    fake->chunk_files_[*handle] = file;
    return Ok();
  }
  static CUresult ReleaseChunk(CUmemGenericAllocationHandle handle) {
    std::lock_guard lock(chunk_mutex);
    close(fake->chunk_files_.at(handle));
    fake->chunk_files_.erase(handle);
    ++fake->chunks_left_;
    return CUDA_SUCCESS;
  }
  static CUresult Export(void* target, CUmemGenericAllocationHandle handle,
                         CUmemAllocationHandleType, unsigned long long) {
    if (fake->refuse_exports_) return CUDA_ERROR_NOT_SUPPORTED;
    std::lock_guard lock(chunk_mutex);
    *static_cast<int*>(target) = dup(fake->chunk_files_.at(handle));
    return Ok();
  }
  static CUresult Import(CUmemGenericAllocationHandle* handle, void* source,
                         CUmemAllocationHandleType) {
    std::lock_guard lock(chunk_mutex);
    *handle = fake->next_chunk_++;
    fake->chunk_files_[*handle] = dup(static_cast<int>(reinterpret_cast<std::intptr_t>(source)));
    return Ok();
  }
  static CUresult Reserve(CUdeviceptr* address, std::size_t, std::size_t, CUdeviceptr hint,
                          unsigned long long) {
    // Where the sanitizers allow mappings.
    constexpr CUdeviceptr kAnywhere = 0x5580'0000'0000;
    *address = hint == 0 ? kAnywhere : fake->misplace_ ? hint + FakeCuda::kChunk : hint;
    return Ok();
  }
  static CUresult Free(CUdeviceptr, std::size_t) { return CUDA_SUCCESS; }
  static CUresult Map(CUdeviceptr address, std::size_t bytes, std::size_t,
                      CUmemGenericAllocationHandle handle, unsigned long long) {
    if (Ok() != CUDA_SUCCESS) return Ok();
    std::lock_guard lock(chunk_mutex);
    if (fake->mapped_.contains(address)) return CUDA_ERROR_INVALID_VALUE;
    void* at = mmap(Pointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED_NOREPLACE,
                    fake->chunk_files_.at(handle), 0);
    TORPOR_CHECK(at == Pointer(address));
    fake->mapped_[address] = handle;
    return CUDA_SUCCESS;
  }
  static CUresult Unmap(CUdeviceptr address, std::size_t bytes) {
    for (std::uint64_t at = address; at < address + bytes; at += FakeCuda::kChunk) {
      if (fake->mapped_.erase(at) == 0) return CUDA_ERROR_INVALID_VALUE;
    }
    munmap(Pointer(address), bytes);
    return CUDA_SUCCESS;
  }
  static CUresult SetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc*,
                            std::size_t) {
    TORPOR_CHECK(mprotect(Pointer(address), bytes, PROT_READ | PROT_WRITE) == 0);
    return Ok();
  }
  static CUresult Register(void* begin, std::size_t bytes, unsigned) {
    fake->registered_[reinterpret_cast<std::uint64_t>(begin)] = bytes;
    return Ok();
  }
  static CUresult Unregister(void* begin) {
    return fake->registered_.erase(reinterpret_cast<std::uint64_t>(begin)) == 1
               ? CUDA_SUCCESS
               : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  static CUresult DevicePointer(CUdeviceptr* device, void* host, unsigned) {
    return *device = reinterpret_cast<CUdeviceptr>(host), Ok();
  }

  // A copy that spans the end of a registration is refused, as the real driver does.
  static bool Spans(std::uint64_t begin, std::uint64_t bytes) {
    for (const auto& [at, size] : fake->registered_) {
      const bool begin_in = begin >= at && begin < at + size;
      const bool end_in = begin + bytes > at && begin + bytes <= at + size;
      if (begin_in != end_in) return true;
    }
    return false;
  }
  static CUresult HtoD(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
    const auto source = reinterpret_cast<std::uint64_t>(from);
    if (Spans(source, bytes)) return CUDA_ERROR_INVALID_VALUE;
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kCopy, to, source, bytes});
    return Ok();
  }
  static CUresult DtoH(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    const auto target = reinterpret_cast<std::uint64_t>(to);
    if (Spans(target, bytes)) return CUDA_ERROR_INVALID_VALUE;
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kCopy, target, from, bytes});
    return Ok();
  }
  static CUresult DtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    if (fake->refuse_device_copies_) return CUDA_ERROR_NOT_PERMITTED;
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kCopy, to, from, bytes});
    return Ok();
  }
  static CUresult Copy2D(const CUDA_MEMCPY2D* copy, CUstream stream) {
    const auto at = [](CUmemorytype type, CUdeviceptr device, const void* host) {
      return type == CU_MEMORYTYPE_DEVICE ? device : reinterpret_cast<std::uint64_t>(host);
    };
    for (std::size_t row = 0; row < copy->Height; ++row) {
      fake->Enqueue(stream,
                    {FakeCuda::Work::Kind::kCopy,
                     at(copy->dstMemoryType, copy->dstDevice, copy->dstHost) + row * copy->dstPitch,
                     at(copy->srcMemoryType, copy->srcDevice, copy->srcHost) + row * copy->srcPitch,
                     copy->WidthInBytes});
    }
    return Ok();
  }
  static FakeCuda::Array& ArrayOf(CUarray array) {
    auto* found = reinterpret_cast<FakeCuda::Array*>(array);
    TORPOR_CHECK(fake->arrays_.contains(found));
    return *found;
  }
  // Channels of 4 bytes only. A new array holds what another may have left there.
  static CUresult CreateArray(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* description) {
    if (fake->refuse_arrays_) return CUDA_ERROR_OUT_OF_MEMORY;
    auto made = std::make_unique<FakeCuda::Array>();
    made->row_bytes = description->Width * description->NumChannels * 4;
    made->rows = std::max<std::size_t>(description->Height, 1);
    made->texels.assign(made->row_bytes * made->rows * std::max<std::size_t>(description->Depth, 1),
                        0xcd);
    fake->arrays_.insert(made.get());
    *array = reinterpret_cast<CUarray>(made.get());
    fake->array_memory_.push_back(std::move(made));
    return Ok();
  }
  static CUresult DestroyArray(CUarray array) {
    fake->arrays_.erase(&ArrayOf(array));
    return CUDA_SUCCESS;
  }
  static CUresult CreateMipmapped(CUmipmappedArray* mipmapped,
                                  const CUDA_ARRAY3D_DESCRIPTOR* description, unsigned levels) {
    CUDA_ARRAY3D_DESCRIPTOR level = *description;
    std::vector<FakeCuda::Array*> made;
    for (unsigned i = 0; i < levels; ++i) {
      CUarray array = nullptr;
      if (const CUresult result = CreateArray(&array, &level); result != CUDA_SUCCESS)
        return result;
      made.push_back(&ArrayOf(array));
      level.Width = std::max<std::size_t>(level.Width / 2, 1);
      level.Height = std::max<std::size_t>(level.Height / 2, 1);
      if ((level.Flags & CUDA_ARRAY3D_LAYERED) == 0) {
        level.Depth = std::max<std::size_t>(level.Depth / 2, 1);
      }
    }
    fake->mipmapped_.push_back(std::move(made));
    return *mipmapped = reinterpret_cast<CUmipmappedArray>(fake->mipmapped_.size()), Ok();
  }
  static std::vector<FakeCuda::Array*>& LevelsOf(CUmipmappedArray mipmapped) {
    return fake->mipmapped_.at(reinterpret_cast<std::size_t>(mipmapped) - 1);
  }
  static CUresult GetLevel(CUarray* level, CUmipmappedArray mipmapped, unsigned index) {
    if (fake->refuse_levels_ && index == 1) return CUDA_ERROR_INVALID_VALUE;
    return *level = reinterpret_cast<CUarray>(LevelsOf(mipmapped).at(index)), Ok();
  }
  static CUresult DestroyMipmapped(CUmipmappedArray mipmapped) {
    for (FakeCuda::Array* const level : LevelsOf(mipmapped)) fake->arrays_.erase(level);
    return CUDA_SUCCESS;
  }
  static CUresult Copy3D(const CUDA_MEMCPY3D* copy, CUstream stream) {
    const auto row = [](CUmemorytype type, CUdeviceptr device, const void* host, CUarray array,
                        std::size_t x, std::size_t y, std::size_t z, std::size_t pitch,
                        std::size_t rows) {
      if (type == CU_MEMORYTYPE_ARRAY) {
        FakeCuda::Array& from = ArrayOf(array);
        return reinterpret_cast<std::uint64_t>(from.texels.data()) +
               (z * from.rows + y) * from.row_bytes + x;
      }
      const std::uint64_t base =
          type == CU_MEMORYTYPE_DEVICE ? device : reinterpret_cast<std::uint64_t>(host);
      return base + (z * rows + y) * pitch + x;
    };
    for (std::size_t z = 0; z < copy->Depth; ++z) {
      for (std::size_t y = 0; y < copy->Height; ++y) {
        fake->Enqueue(stream, {FakeCuda::Work::Kind::kCopy,
                               row(copy->dstMemoryType, copy->dstDevice, copy->dstHost,
                                   copy->dstArray, copy->dstXInBytes, copy->dstY + y,
                                   copy->dstZ + z, copy->dstPitch, copy->dstHeight),
                               row(copy->srcMemoryType, copy->srcDevice, copy->srcHost,
                                   copy->srcArray, copy->srcXInBytes, copy->srcY + y,
                                   copy->srcZ + z, copy->srcPitch, copy->srcHeight),
                               copy->WidthInBytes});
      }
    }
    return Ok();
  }
  static CUresult CreateImageObject(std::uint64_t* value) {
    *value = fake->next_image_object_++;
    fake->image_objects_.insert(*value);
    return Ok();
  }
  static CUresult CreateTexture(CUtexObject* texture, const CUDA_RESOURCE_DESC*,
                                const CUDA_TEXTURE_DESC*, const CUDA_RESOURCE_VIEW_DESC*) {
    std::uint64_t value = 0;
    const CUresult made = CreateImageObject(&value);
    return *texture = value, made;
  }
  static CUresult CreateSurface(CUsurfObject* surface, const CUDA_RESOURCE_DESC*) {
    std::uint64_t value = 0;
    const CUresult made = CreateImageObject(&value);
    return *surface = value, made;
  }
  static CUresult DestroyImageObject(unsigned long long value) {
    return fake->image_objects_.erase(value) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }

  static CUresult Fill8(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kFill, to, 0, count, value});
    return Ok();
  }
  static CUresult Fill16(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
    for (std::size_t i = 0; i < count; ++i) {
      Fill8(to + 2 * i, static_cast<unsigned char>(value), 1, stream);
      Fill8(to + 2 * i + 1, static_cast<unsigned char>(value >> 8), 1, stream);
    }
    return Ok();
  }
  static CUresult Fill32(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
    for (std::size_t i = 0; i < count; ++i) {
      Fill16(to + 4 * i, static_cast<unsigned short>(value), 1, stream);
      Fill16(to + 4 * i + 2, static_cast<unsigned short>(value >> 16), 1, stream);
    }
    return Ok();
  }
  template <typename Value, CUresult (*FillRow)(CUdeviceptr, Value, std::size_t, CUstream)>
  static CUresult Fill2D(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width,
                         std::size_t height, CUstream stream) {
    for (std::size_t row = 0; row < height; ++row) FillRow(to + row * pitch, value, width, stream);
    return Ok();
  }

  static CUresult StreamCreate(CUstream* stream, unsigned, int) {
    fake->streams_.push_back(std::make_unique<FakeCuda::Stream>());
    fake->streams_.back()->held = fake->hold_;
    *stream = reinterpret_cast<CUstream>(fake->streams_.back().get());
    return Ok();
  }
  // Work that it still has goes on.
  static CUresult StreamDestroy(CUstream stream) {
    auto* target = reinterpret_cast<FakeCuda::Stream*>(stream);
    if (target->work.empty()) {
      std::erase_if(fake->streams_, [&](const auto& other) { return other.get() == target; });
    }
    return CUDA_SUCCESS;
  }
  static CUresult StreamSync(CUstream) {
    fake->Release();
    return Ok();
  }
  static CUresult StreamQuery(CUstream stream) {
    if (Ok() != CUDA_SUCCESS) return Ok();
    return reinterpret_cast<FakeCuda::Stream*>(stream)->work.empty() ? CUDA_SUCCESS
                                                                     : CUDA_ERROR_NOT_READY;
  }
  static CUresult StreamWait(CUstream stream, CUevent event, unsigned) {
    auto* target = reinterpret_cast<FakeCuda::Event*>(event);
    ++fake->waits_enqueued_;
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kWait, 0, 0, 0, target->recorded, target});
    return Ok();
  }
  static CUresult WriteValue(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned) {
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kWrite, at, 0, 0, value});
    return Ok();
  }
  static CUresult WaitValue(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
    TORPOR_CHECK(flags == CU_STREAM_WAIT_VALUE_GEQ);
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kAwait, at, 0, 0, value});
    return Ok();
  }
  static CUresult HostFunc(CUstream stream, CUhostFn function, void* data) {
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kCall, reinterpret_cast<std::uint64_t>(data),
                           reinterpret_cast<std::uint64_t>(function)});
    return Ok();
  }
  static CUresult EventCreate(CUevent* event, unsigned) {
    fake->events_.push_back(std::make_unique<FakeCuda::Event>());
    *event = reinterpret_cast<CUevent>(fake->events_.back().get());
    ++fake->live_events_;
    return Ok();
  }
  static CUresult EventDestroy(CUevent) { return --fake->live_events_, CUDA_SUCCESS; }
  static CUresult EventRecord(CUevent event, CUstream stream) {
    auto* target = reinterpret_cast<FakeCuda::Event*>(event);
    ++target->recorded;
    ++fake->events_recorded_;
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kRecord, 0, 0, 0, target->recorded, target});
    return Ok();
  }
  static CUresult EventSync(CUevent) {
    fake->Release();
    return Ok();
  }
  static CUresult Elapsed(float* milliseconds, CUevent, CUevent) {
    return *milliseconds = 1.5F, Ok();
  }

  // One module: kernel "record" of one 8-byte parameter and variable "counter" of 8 bytes.
  static CUresult LoadModule(CUmodule* module, const void* image) {
    if (image != fake) WalkModule(image);  // which LinkComplete gives
    fake->variables_.push_back(0);
    return *module = reinterpret_cast<CUmodule>(++fake->modules_loaded_), Ok();
  }
  static CUresult LoadMachineCode(CUmodule* module, const void* image, unsigned, CUjit_option*,
                                  void**) {
    return fake->has_machine_code_ ? LoadModule(module, image) : CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  static CUresult LinkCreate(unsigned, CUjit_option*, void**, CUlinkState* state) {
    return *state = reinterpret_cast<CUlinkState>(1), Ok();
  }
  static CUresult LinkAdd(CUlinkState, CUjitInputType type, void* data, std::size_t bytes,
                          const char*, unsigned, CUjit_option*, void**) {
    const auto* const first = static_cast<const std::uint8_t*>(data);
    if (type == CU_JIT_INPUT_FATBINARY) fake->linked_.emplace_back(first, first + bytes);
    return Ok();
  }
  static CUresult LinkComplete(CUlinkState, void** image, std::size_t*) {
    return *image = fake, Ok();
  }
  static CUresult LinkDestroy(CUlinkState) { return CUDA_SUCCESS; }
  static CUresult UnloadModule(CUmodule) { return CUDA_SUCCESS; }
  static CUresult CountFunctions(unsigned* count, CUmodule) { return *count = 1, Ok(); }
  // The kernel of each module has the module's number.
  static CUresult Enumerate(CUfunction* functions, unsigned, CUmodule module) {
    return functions[0] = reinterpret_cast<CUfunction>(module), Ok();
  }
  static CUresult Global(CUdeviceptr* address, std::size_t* bytes, CUmodule module,
                         const char* name) {
    if (std::strcmp(name, "counter") != 0) return CUDA_ERROR_NOT_FOUND;
    std::uint64_t& variable = fake->variables_.at(reinterpret_cast<std::uintptr_t>(module) - 1);
    *address = reinterpret_cast<CUdeviceptr>(&variable);
    *bytes = sizeof variable;
    return Ok();
  }
  static CUresult FunctionName(const char** name, CUfunction) { return *name = "record", Ok(); }
  static CUresult ParamInfo(CUfunction, std::size_t index, std::size_t* offset,
                            std::size_t* bytes) {
    if (index >= fake->parameters_.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = fake->parameters_[index].offset;
    *bytes = fake->parameters_[index].bytes;
    return CUDA_SUCCESS;
  }
  static CUresult FunctionAttribute(int* value, CUfunction_attribute attribute,
                                    CUfunction function) {
    const auto set = fake->attributes_.find({function, attribute});
    return *value = set == fake->attributes_.end() ? 32 : set->second, Ok();
  }
  static CUresult SetFunctionAttribute(CUfunction function, CUfunction_attribute attribute,
                                       int value) {
    return fake->attributes_[{function, attribute}] = value, Ok();
  }
  static CUresult Occupancy(int* blocks, CUfunction, int, std::size_t, unsigned) {
    return *blocks = 4, Ok();
  }
  static CUresult Launch(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, CUstream stream, void** parameters, void**) {
    if (fake->ignore_launches_) return Ok();
    std::uint64_t value = 0;
    std::memcpy(&value, parameters[0], sizeof value);
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kLaunch, 0, 0, 0, value});
    return Ok();
  }
  // Work goes to the capture, whatever the stream, except for records of events and waits.
  static CUresult BeginCapture(CUstream, CUstreamCaptureMode) {
    TORPOR_CHECK(!fake->capture_);
    return fake->capture_.emplace(), Ok();
  }
  static CUresult EndCapture(CUstream, CUgraph* graph) {
    fake->graphs_.push_back(std::move(*fake->capture_));
    fake->capture_.reset();
    if (fake->refuse_captures_) return *graph = nullptr, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return *graph = reinterpret_cast<CUgraph>(fake->graphs_.size()), Ok();
  }
  static CUresult Instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
    ++fake->live_graph_execs_;
    return *exec = reinterpret_cast<CUgraphExec>(graph), Ok();
  }
  static CUresult Update(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*) {
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  static CUresult LaunchGraph(CUgraphExec exec, CUstream stream) {
    for (const FakeCuda::Work& work : fake->graphs_[reinterpret_cast<std::size_t>(exec) - 1]) {
      fake->Enqueue(stream, work);
    }
    return ++fake->graphs_launched_, Ok();
  }
  static CUresult DestroyExec(CUgraphExec) { return --fake->live_graph_execs_, Ok(); }
  static CUresult DestroyGraph(CUgraph) { return Ok(); }
  static CUresult LaunchEx(const CUlaunchConfig* config, CUfunction f, void** parameters, void**) {
    fake->last_attributes_.assign(config->attrs, config->attrs + config->numAttrs);
    return Launch(f, 1, 1, 1, 1, 1, 1, 0, config->hStream, parameters, nullptr);
  }
};

FakeCuda::FakeCuda() {
  TORPOR_CHECK(fake == nullptr);
  fake = this;
  using F = FakeDriverFunctions;
  driver_ = {.Init = F::Init,
             .DriverGetVersion = F::GetVersion,
             .GetErrorName = F::GetErrorName,
             .GetErrorString = F::GetErrorName,
             .LogsRegisterCallback = F::RegisterLog,
             .DeviceGetCount = F::GetCount,
             .DeviceGet = F::Get,
             .DeviceGetName = F::GetName,
             .DeviceGetUuid = F::GetUuid,
             .DeviceTotalMem = F::TotalMem,
             .DeviceGetAttribute = F::GetAttribute,
             .DeviceGetPciBusId = F::GetBusId,
             .DevicePrimaryCtxSetFlags = F::SetContextFlags,
             .DevicePrimaryCtxRetain = F::Retain,
             .DevicePrimaryCtxRelease = F::Release,
             .CtxSetCurrent = F::SetCurrent,
             .CtxGetLimit = F::GetLimit,
             .CtxSetLimit = F::SetLimit,
             .MemGetAllocationGranularity = F::Granularity,
             .MemCreate = F::Create,
             .MemRelease = F::ReleaseChunk,
             .MemAddressReserve = F::Reserve,
             .MemAddressFree = F::Free,
             .MemMap = F::Map,
             .MemUnmap = F::Unmap,
             .MemSetAccess = F::SetAccess,
             .MemExportToShareableHandle = F::Export,
             .MemImportFromShareableHandle = F::Import,
             .MemHostRegister = F::Register,
             .MemHostUnregister = F::Unregister,
             .MemHostGetDevicePointer = F::DevicePointer,
             .MemcpyHtoDAsync = F::HtoD,
             .MemcpyDtoHAsync = F::DtoH,
             .MemcpyDtoDAsync = F::DtoD,
             .Memcpy2DAsync = F::Copy2D,
             .Memcpy3DAsync = F::Copy3D,
             .MemsetD8Async = F::Fill8,
             .MemsetD16Async = F::Fill16,
             .MemsetD32Async = F::Fill32,
             .MemsetD2D8Async = F::Fill2D<unsigned char, F::Fill8>,
             .MemsetD2D16Async = F::Fill2D<unsigned short, F::Fill16>,
             .MemsetD2D32Async = F::Fill2D<unsigned, F::Fill32>,
             .Array3DCreate = F::CreateArray,
             .ArrayDestroy = F::DestroyArray,
             .MipmappedArrayCreate = F::CreateMipmapped,
             .MipmappedArrayGetLevel = F::GetLevel,
             .MipmappedArrayDestroy = F::DestroyMipmapped,
             .TexObjectCreate = F::CreateTexture,
             .TexObjectDestroy = F::DestroyImageObject,
             .SurfObjectCreate = F::CreateSurface,
             .SurfObjectDestroy = F::DestroyImageObject,
             .StreamCreateWithPriority = F::StreamCreate,
             .StreamDestroy = F::StreamDestroy,
             .StreamSynchronize = F::StreamSync,
             .StreamQuery = F::StreamQuery,
             .StreamWaitEvent = F::StreamWait,
             .StreamWriteValue64 = F::WriteValue,
             .StreamWaitValue64 = F::WaitValue,
             .LaunchHostFunc = F::HostFunc,
             .StreamBeginCapture = F::BeginCapture,
             .StreamEndCapture = F::EndCapture,
             .GraphInstantiate = F::Instantiate,
             .GraphExecUpdate = F::Update,
             .GraphLaunch = F::LaunchGraph,
             .GraphExecDestroy = F::DestroyExec,
             .GraphDestroy = F::DestroyGraph,
             .EventCreate = F::EventCreate,
             .EventDestroy = F::EventDestroy,
             .EventRecord = F::EventRecord,
             .EventSynchronize = F::EventSync,
             .EventElapsedTime = F::Elapsed,
             .ModuleLoadData = F::LoadModule,
             .ModuleLoadDataEx = F::LoadMachineCode,
             .LinkCreate = F::LinkCreate,
             .LinkAddData = F::LinkAdd,
             .LinkComplete = F::LinkComplete,
             .LinkDestroy = F::LinkDestroy,
             .ModuleUnload = F::UnloadModule,
             .ModuleGetFunctionCount = F::CountFunctions,
             .ModuleEnumerateFunctions = F::Enumerate,
             .ModuleGetGlobal = F::Global,
             .FuncLoad = F::FuncLoad,
             .FuncGetName = F::FunctionName,
             .FuncGetParamInfo = F::ParamInfo,
             .FuncGetAttribute = F::FunctionAttribute,
             .FuncSetAttribute = F::SetFunctionAttribute,
             .OccupancyMaxActiveBlocks = F::Occupancy,
             .LaunchKernel = F::Launch,
             .LaunchKernelEx = F::LaunchEx};
}

FakeCuda::~FakeCuda() { fake = nullptr; }

bool FakeCuda::IsRegistered(const void* address) const {
  const auto at = reinterpret_cast<std::uint64_t>(address);
  const auto after = registered_.upper_bound(at);
  return after != registered_.begin() && at - std::prev(after)->first < std::prev(after)->second;
}

void FakeCuda::HoldStreams() {
  hold_ = true;
  for (const auto& stream : streams_) stream->held = true;
}

void FakeCuda::Enqueue(CUstream stream, const Work& work) {
  const bool is_order = work.kind == Work::Kind::kRecord || work.kind == Work::Kind::kWait;
  if (capture_) {
    if (!is_order) capture_->push_back(work);
    return;
  }
  auto* target = reinterpret_cast<Stream*>(stream);
  target->work.push_back(work);
  while (!target->held && !target->work.empty() && RunFront(*target)) {
  }
}

bool FakeCuda::RunFront(Stream& stream) {
  const Work work = stream.work.front();
  switch (work.kind) {
    case Work::Kind::kCopy:
      std::memmove(Pointer(work.to), Pointer(work.from), work.bytes);
      break;
    case Work::Kind::kFill:
      std::memset(Pointer(work.to), static_cast<int>(work.value), work.bytes);
      break;
    case Work::Kind::kLaunch:
      launches_.push_back(work.value);
      bytes_seen_.push_back(ByteAt(work.value));
      break;
    case Work::Kind::kWrite:
      std::memcpy(Pointer(work.to), &work.value, sizeof work.value);
      break;
    case Work::Kind::kAwait: {
      std::uint64_t present = 0;
      std::memcpy(&present, Pointer(work.to), sizeof present);
      const bool is_reached = static_cast<std::int64_t>(present - work.value) >= 0;
      if (!is_reached && !ignore_waits_for_values_) return false;
      break;
    }
    case Work::Kind::kRecord:
      work.event->completed = work.value;
      break;
    case Work::Kind::kWait:
      if (work.event->completed < work.value) return false;
      break;
    case Work::Kind::kCall:
      reinterpret_cast<CUhostFn>(work.from)(Pointer(work.to));
      break;
  }
  stream.work.pop_front();
  return true;
}

std::uint8_t FakeCuda::ByteAt(std::uint64_t address) const {
  const auto after = mapped_.upper_bound(address);
  const bool is_mapped = after != mapped_.begin() && address - std::prev(after)->first < kChunk;
  return is_mapped ? *static_cast<const std::uint8_t*>(Pointer(address)) : 0;
}

void FakeCuda::Release() { ReleaseUpTo(nullptr, 0); }

void FakeCuda::ReleaseUpTo(CUstream limited, std::size_t records) {
  for (bool progress = true; progress;) {
    progress = false;
    for (auto stream = streams_.rbegin(); stream != streams_.rend(); ++stream) {
      const bool is_limited = stream->get() == reinterpret_cast<Stream*>(limited);
      while (!(*stream)->work.empty() && !(is_limited && records == 0)) {
        const bool is_record = (*stream)->work.front().kind == Work::Kind::kRecord;
        if (!RunFront(**stream)) break;
        if (is_limited && is_record) --records;
        progress = true;
      }
    }
  }
}

}  // namespace torpor::executor
