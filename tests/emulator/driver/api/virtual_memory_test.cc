#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "tests/emulator/driver/api/cuda_test.h"
#include "tests/emulator/node/process.h"

namespace torpor::emulator {
namespace {

constexpr size_t kUnit = size_t{2} << 20;

#if defined(__SANITIZE_THREAD__)
constexpr CUdeviceptr kFixed = 0x10'0000'0000;
#else
constexpr CUdeviceptr kFixed = 0x2000'0000'0000;
#endif

// A message of one byte and one descriptor.
struct DescriptorMessage {
  DescriptorMessage() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
  }
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
};

bool SendDescriptor(int socket, int fd) {
  DescriptorMessage sent;
  cmsghdr* const header = CMSG_FIRSTHDR(&sent.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return sendmsg(socket, &sent.message, 0) == 1;
}

// -1 if none comes.
int ReceiveDescriptor(int socket) {
  DescriptorMessage received;
  if (recvmsg(socket, &received.message, 0) != 1) return -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&received.message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  return fd;
}

class VirtualMemoryTest : public CudaTest {
 protected:
  static CUmemGenericAllocationHandle Create(size_t size = kUnit, CUdevice device = 0) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CUDA(cuMemCreate(&handle, size, &properties, 0));
    return handle;
  }

  static CUresult Allow(CUdeviceptr address, size_t size,
                        CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    access.flags = flags;
    return cuMemSetAccess(address, size, &access, 1);
  }

  static CUmemGenericAllocationHandle Import(int fd) {
    CUmemGenericAllocationHandle imported = 0;
    EXPECT_CUDA(cuMemImportFromShareableHandle(
        &imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    return imported;
  }

  // Handles of kUnit bytes one behind the other.
  static CUdeviceptr MapNew(const std::vector<CUmemGenericAllocationHandle>& handles) {
    const size_t size = handles.size() * kUnit;
    CUdeviceptr address = 0;
    EXPECT_CUDA(cuMemAddressReserve(&address, size, 0, 0, 0));
    for (size_t i = 0; i < handles.size(); ++i) {
      EXPECT_CUDA(cuMemMap(address + i * kUnit, kUnit, 0, handles[i], 0));
    }
    EXPECT_CUDA(Allow(address, size));
    return address;
  }
};

TEST_F(VirtualMemoryTest, FixedReservation) {
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAddressReserve(&address, size_t{64} << 30, 0, kFixed, 0));
  EXPECT_EQ(address, kFixed);
  CUdeviceptr other = 0;
  ASSERT_CUDA(cuMemAddressReserve(&other, kUnit, 0, kFixed, 0));
  EXPECT_NE(other, kFixed);  // taken: the hint is not honoured
  EXPECT_EQ(cuMemAddressFree(address, kUnit), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuMemAddressFree(address, size_t{64} << 30));
  EXPECT_EQ(cuMemAddressReserve(&other, kUnit + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemoryTest, HintThatTheProcessUsesIsNotTaken) {
  void* mine = mmap(reinterpret_cast<void*>(kFixed), kUnit, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(mine, reinterpret_cast<void*>(kFixed));
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAddressReserve(&address, kUnit, 0, kFixed, 0));
  EXPECT_NE(address, kFixed);
}

TEST_F(VirtualMemoryTest, AccessOnlyAfterSetAccess) {
  const auto handle = Create();
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAddressReserve(&address, 4 * kUnit, 0, kFixed, 0));
  ASSERT_CUDA(cuMemMap(address, kUnit, 0, handle, 0));
  EXPECT_EQ(cuMemsetD8(address, 1, 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(Allow(address, kUnit, CU_MEM_ACCESS_FLAGS_PROT_READ));
  EXPECT_EQ(cuMemsetD8(address, 1, 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(Allow(address, kUnit));
  EXPECT_CUDA(cuMemsetD8(address, 1, kUnit));
  EXPECT_EQ(cuMemsetD8(address, 1, kUnit + 1), CUDA_ERROR_INVALID_VALUE);
  unsigned long long flags = 0;
  const CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  ASSERT_CUDA(cuMemGetAccess(&flags, &location, address));
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  ASSERT_CUDA(cuMemUnmap(address, kUnit));
  EXPECT_EQ(cuMemsetD8(address, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuMemRelease(handle));
}

TEST_F(VirtualMemoryTest, OneHandleAtSeveralAddresses) {
  const auto handle = Create();
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAddressReserve(&address, 4 * kUnit, 0, kFixed, 0));
  ASSERT_CUDA(cuMemMap(address, kUnit, 0, handle, 0));
  ASSERT_CUDA(cuMemMap(address + kUnit, kUnit, 0, handle, 0));
  ASSERT_CUDA(Allow(address, 2 * kUnit));  // one call over two mappings
  ASSERT_CUDA(cuMemsetD8(address, 9, 1));
  char got = 0;
  ASSERT_CUDA(cuMemcpyDtoH(&got, address + kUnit, 1));
  EXPECT_EQ(got, 9);
  EXPECT_EQ(cuMemMap(address, kUnit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(address, 4 * kUnit), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuMemUnmap(address, 2 * kUnit));
  EXPECT_CUDA(cuMemAddressFree(address, 4 * kUnit));
}

TEST_F(VirtualMemoryTest, HandleIsMappedWhole) {
  const auto handle = Create(2 * kUnit);
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAddressReserve(&address, 2 * kUnit, 0, kFixed, 0));
  EXPECT_EQ(cuMemMap(address, kUnit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(address, kUnit, kUnit, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(address + kUnit, 2 * kUnit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(cuMemMap(address, 2 * kUnit, 0, handle, 0));
  EXPECT_EQ(Allow(address, kUnit), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address, kUnit), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemoryTest, MemoryLivesAsLongAsItIsMapped) {
  size_t free_before = 0;
  ASSERT_CUDA(cuMemGetInfo(&free_before, nullptr));
  const auto handle = Create(64 * kUnit);
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAddressReserve(&address, 64 * kUnit, 0, 0, 0));
  ASSERT_CUDA(cuMemMap(address, 64 * kUnit, 0, handle, 0));
  ASSERT_CUDA(cuMemRelease(handle));
  size_t free = 0;
  ASSERT_CUDA(cuMemGetInfo(&free, nullptr));
  EXPECT_EQ(free, free_before - 64 * kUnit);
  ASSERT_CUDA(cuMemUnmap(address, 64 * kUnit));
  ASSERT_CUDA(cuMemGetInfo(&free, nullptr));
  EXPECT_EQ(free, free_before);
}

TEST_F(VirtualMemoryTest, TotalIsEnforced) {
  Create(100 * kUnit);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, 29 * kUnit, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemCreate(&handle, 1, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  properties.location.id = 7;
  EXPECT_EQ(cuMemCreate(&handle, kUnit, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(VirtualMemoryTest, RetainGivesAnotherHandle) {
  const auto handle = Create();
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAddressReserve(&address, kUnit, 0, 0, 0));
  ASSERT_CUDA(cuMemMap(address, kUnit, 0, handle, 0));
  CUmemGenericAllocationHandle retained = 0;
  ASSERT_CUDA(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(address)));
  CUmemAllocationProp properties{};
  ASSERT_CUDA(cuMemGetAllocationPropertiesFromHandle(&properties, retained));
  EXPECT_EQ(properties.location.id, 0);
  EXPECT_CUDA(cuMemRelease(retained));
  EXPECT_CUDA(cuMemRelease(handle));
  EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemoryTest, ExportedMemoryIsTheSameWhenImported) {
  const auto handle = Create();
  int fd = -1;
  ASSERT_CUDA(
      cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  const auto imported = Import(fd);
  close(fd);
  const CUdeviceptr address = MapNew({handle, imported});
  ASSERT_CUDA(cuMemsetD8(address, 3, kUnit));
  char got = 0;
  ASSERT_CUDA(cuMemcpyDtoH(&got, address + 2 * kUnit - 1, 1));
  EXPECT_EQ(got, 3);
}

TEST_F(VirtualMemoryTest, OtherDescriptorsAreNoMemory) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  CUmemGenericAllocationHandle imported = 0;
  EXPECT_EQ(cuMemImportFromShareableHandle(
                &imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(sockets[0])),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_ERROR_INVALID_VALUE);
}

class TwoProcessesTest : public VirtualMemoryTest {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_), 0); }

  int sockets_[2] = {};
};

TEST_F(TwoProcessesTest, AnotherProcessImportsUnderItsOwnIndex) {
  const Process importer([this] {
    close(sockets_[0]);
    setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
    Start();
    const int fd = ReceiveDescriptor(sockets_[1]);
    EXPECT_GE(fd, 0);
    const auto imported = Import(fd);
    CUmemAllocationProp properties{};
    EXPECT_CUDA(cuMemGetAllocationPropertiesFromHandle(&properties, imported));
    EXPECT_EQ(properties.location.id, 0);
    const CUdeviceptr address = MapNew({imported});
    char got = 0;
    EXPECT_CUDA(cuMemcpyDtoH(&got, address + kUnit - 1, 1));
    EXPECT_EQ(got, 3);
    EXPECT_CUDA(cuMemsetD8(address, 4, kUnit));
    EXPECT_EQ(write(sockets_[1], "w", 1), 1);
  });
  close(sockets_[1]);
  Start();
  const auto handle = Create(kUnit, 1);
  const CUdeviceptr address = MapNew({handle});
  ASSERT_CUDA(cuMemsetD8(address, 3, kUnit));
  int fd = -1;
  ASSERT_CUDA(
      cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  ASSERT_TRUE(SendDescriptor(sockets_[0], fd));
  close(fd);
  char written = 0;
  ASSERT_EQ(read(sockets_[0], &written, 1), 1);
  char got = 0;
  ASSERT_CUDA(cuMemcpyDtoH(&got, address, 1));
  EXPECT_EQ(got, 4);
}

TEST_F(TwoProcessesTest, MemoryOfAGpuThatIsNotVisibleIsRefused) {
  const Process importer([this] {
    close(sockets_[0]);
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    Start();
    const int fd = ReceiveDescriptor(sockets_[1]);
    EXPECT_GE(fd, 0);
    CUmemGenericAllocationHandle imported = 0;
    EXPECT_EQ(cuMemImportFromShareableHandle(
                  &imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_ERROR_INVALID_VALUE);
  });
  close(sockets_[1]);
  Start();
  int fd = -1;
  ASSERT_CUDA(cuMemExportToShareableHandle(&fd, Create(kUnit, 1),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  ASSERT_TRUE(SendDescriptor(sockets_[0], fd));
  close(fd);
}

TEST_F(VirtualMemoryTest, MoreHandlesThanTheSoftLimitOfDescriptors) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<CUmemGenericAllocationHandle> handles;
  for (size_t i = 0; i < 100; ++i) handles.push_back(Create());
  const CUdeviceptr address = MapNew(handles);
  ASSERT_CUDA(cuMemsetD8(address, 1, 100 * kUnit));
  ASSERT_CUDA(cuMemUnmap(address, 100 * kUnit));
}

}  // namespace
}  // namespace torpor::emulator
