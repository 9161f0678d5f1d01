#include "emulator/driver/memory/physical_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

namespace torpor::emulator {
namespace {

// The device's place in the topology travels in the file's name, readable in every process that has
// the file open. An index would not do: each process has its own CUDA_VISIBLE_DEVICES.
constexpr char kFilePrefix[] = "torpor-gpu-";
constexpr int kFirstFreeDescriptor = 3;

// A handle is a descriptor, and a pool of a GPU's memory may be thousands of handles: more than the
// customary soft limit, which exists for select() and not for lack of resources.
bool RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// Tries again after raising the limit of descriptors.
int CreateFile(unsigned place) {
  const std::string name = kFilePrefix + std::to_string(place);
  const int fd = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (fd >= 0 || errno != EMFILE || !RaiseDescriptorLimit()) return fd;
  return memfd_create(name.c_str(), MFD_CLOEXEC);
}

}  // namespace

// The budget is taken first; the result gives it back.
std::shared_ptr<PhysicalMemory> PhysicalMemory::Create(Bytes size,
                                                       const CUmemAllocationProp& properties,
                                                       unsigned place, MemoryBudget& budget,
                                                       NewContents* contents) {
  if (!budget.Take(size)) return nullptr;
  UniqueFd file(CreateFile(place));
  if (!file || ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    budget.Return(size);
    return nullptr;
  }
  return std::make_shared<PhysicalMemory>(std::move(file), size, properties, &budget, contents);
}

// The file's name tells the place; see kFilePrefix.
std::shared_ptr<PhysicalMemory> PhysicalMemory::Import(
    int fd, const std::function<std::optional<CUdevice>(unsigned place)>& device_at) {
  UniqueFd file(fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeDescriptor));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || status.st_size <= 0) return nullptr;
  char target[128] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(file.get());
  if (readlink(link.c_str(), target, sizeof(target) - 1) < 0) return nullptr;
  const std::string name = target;
  const std::size_t prefix = name.find(kFilePrefix);
  if (prefix == std::string::npos) return nullptr;
  const auto device =
      device_at(static_cast<unsigned>(std::atoi(name.c_str() + prefix + sizeof(kFilePrefix) - 1)));
  if (!device) return nullptr;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = *device;
  return std::make_shared<PhysicalMemory>(std::move(file), static_cast<Bytes>(status.st_size),
                                          properties, nullptr, nullptr);
}

PhysicalMemory::~PhysicalMemory() {
  if (budget_ != nullptr) budget_->Return(size_);
}

int PhysicalMemory::Export() const {
  const int fd = fcntl(file_.get(), F_DUPFD_CLOEXEC, kFirstFreeDescriptor);
  if (fd >= 0 || errno != EMFILE || !RaiseDescriptorLimit()) return fd;
  return fcntl(file_.get(), F_DUPFD_CLOEXEC, kFirstFreeDescriptor);
}

}  // namespace torpor::emulator
