// What calls on handles cost, by the handles' size, with the GPU idle and busy.
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "tools/probe/gpu.h"
#include "tools/probe/items.h"
#include "tools/probe/mapped_range.h"

namespace torpor::probe {
namespace {

constexpr std::size_t kTotal = kGiB;
constexpr std::size_t kHandleSizes[] = {2 * kMiB,  4 * kMiB,  8 * kMiB,
                                        16 * kMiB, 32 * kMiB, 64 * kMiB};
constexpr std::size_t kBusyHandleSizes[] = {2 * kMiB, 32 * kMiB};

// 1 GiB of handles of one size, and a reservation for it.
class Handles {
 public:
  Handles(Report& report, std::size_t size, std::string when)
      : report_(report),
        size_(size),
        prefix_(std::to_string(size / kMiB) + "MiB" + std::move(when) + "/"),
        handles_(kTotal / size) {}

  void MeasureAll() {
    Need(report_, cuMemAddressReserve(&base_, kTotal, 0, 0, 0), "cuMemAddressReserve");
    Each("create", [&](std::size_t i) {
      const CUmemAllocationProp properties = HandleProperties(can_export_);
      return cuMemCreate(&handles_[i], size_, &properties, 0);
    });
    MapAll("map");
    Whole("set_access, one call", [&] {
      const CUmemAccessDesc access = ReadWrite();
      return cuMemSetAccess(base_, kTotal, &access, 1);
    });
    Whole("unmap, one call", [&] { return cuMemUnmap(base_, kTotal); });
    MapAll("map again");
    Each("set_access, many calls", [&](std::size_t i) {
      const CUmemAccessDesc access = ReadWrite();
      return cuMemSetAccess(base_ + i * size_, size_, &access, 1);
    });
    Each("unmap, many calls", [&](std::size_t i) { return cuMemUnmap(base_ + i * size_, size_); });
    if (can_export_) Share();
    Each("release", [&](std::size_t i) { return cuMemRelease(handles_[i]); });
    cuMemAddressFree(base_, kTotal);
  }

  // Some sandboxes refuse memory that descriptors can name.
  void WithoutDescriptors() { can_export_ = false; }

 private:
  void MapAll(const char* name) {
    Each(name,
         [&](std::size_t i) { return cuMemMap(base_ + i * size_, size_, 0, handles_[i], 0); });
  }

  // Exports and imports one after another, since a process has few descriptors.
  void Share() {
    double exporting = 0;
    double importing = 0;
    for (const CUmemGenericAllocationHandle handle : handles_) {
      int fd = -1;
      constexpr auto kType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
      const Stopwatch watch;
      const CUresult exported = cuMemExportToShareableHandle(&fd, handle, kType, 0);
      exporting += watch.us();
      if (exported != CUDA_SUCCESS) return report_.Failed(prefix_ + "export", NameOf(exported));
      CUmemGenericAllocationHandle twin = 0;
      const Stopwatch import_watch;
      const CUresult imported = cuMemImportFromShareableHandle(
          &twin, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)), kType);
      importing += import_watch.us();
      close(fd);
      if (imported != CUDA_SUCCESS) return report_.Failed(prefix_ + "import", NameOf(imported));
      cuMemRelease(twin);
    }
    const auto count = static_cast<double>(handles_.size());
    report_.Numbers(prefix_ + "export", "us", {exporting / count});
    report_.Numbers(prefix_ + "import", "us", {importing / count});
  }

  // The mean time of a handle.
  template <typename Call>
  void Each(const char* name, Call&& call) {
    const Stopwatch watch;
    for (std::size_t i = 0; i < handles_.size(); ++i) Need(report_, call(i), name);
    Tell(name, watch);
  }

  template <typename Call>
  void Whole(const char* name, Call&& call) {
    const Stopwatch watch;
    Need(report_, call(), name);
    Tell(name, watch);
  }

  void Tell(const char* name, const Stopwatch& watch) {
    report_.Numbers(prefix_ + name, "us", {watch.us() / static_cast<double>(handles_.size())});
  }

  Report& report_;
  const std::size_t size_;
  const std::string prefix_;
  std::vector<CUmemGenericAllocationHandle> handles_;
  CUdeviceptr base_ = 0;
  bool can_export_ = true;
};

// Whether memory can be made that descriptors can name.
bool HasDescriptors(Report& report) {
  const CUmemAllocationProp properties = HandleProperties();
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = cuMemCreate(&handle, 2 * kMiB, &properties, 0);
  report.Texts("memory with descriptors", {NameOf(result)});
  if (result == CUDA_SUCCESS) cuMemRelease(handle);
  return result == CUDA_SUCCESS;
}

}  // namespace

void ProbeVirtualMemory(Report& report) {
  Gpu gpu(report);
  const bool has_descriptors = HasDescriptors(report);
  const auto measure = [&](std::size_t size, const char* when) {
    Handles handles(report, size, when);
    if (!has_descriptors) handles.WithoutDescriptors();
    handles.MeasureAll();
  };
  for (const std::size_t size : kHandleSizes) measure(size, "");
  for (const std::size_t size : kBusyHandleSizes) {
    const BusyGpu busy(gpu);
    measure(size, ", under a kernel");
  }
}

}  // namespace torpor::probe
