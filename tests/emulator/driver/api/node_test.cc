// A driver's part in an emulated node: links, modelled time, and what it tells of the topology.
#include <chrono>
#include <cstring>
#include <vector>

#include "emulator/node/model_account.h"
#include "tests/emulator/driver/api/cuda_test.h"
#include "tests/emulator/node/process.h"

namespace torpor::emulator {
namespace {

using std::chrono::microseconds;

constexpr char kTopology[] = R"(version: v1
pcie_switches:
  - {name: left, gbps: 1}
gpus:
  - {memory: 256MiB, pcie_switch: left, count: 2}
  - {memory: 256MiB, pcie_gbps: 2, pageable_gbps: 0.5, copy_us: 100}
nvlinks: {gbps_per_link: 4, pairs: [{gpus: [0, 2], links: 2}]}
)";
constexpr std::size_t kSize = 4'000'000;

// A process on a node of three GPUs; the primary context of the first is current.
class NodeTest : public CudaTest {
 protected:
  void SetUp() override {
    const std::string process = std::to_string(getpid());
    topology_path_ = testing::TempDir() + "topology-" + process + ".yaml";
    node_path_ = testing::TempDir() + "node-" + process;
    std::ofstream(topology_path_) << kTopology;
    setenv("TORPOR_EMULATOR_TOPOLOGY", topology_path_.c_str(), 1);
    setenv("TORPOR_EMULATOR_NODE", node_path_.c_str(), 1);
  }
  void TearDown() override {
    std::remove(topology_path_.c_str());
    std::remove(node_path_.c_str());
  }

  void Start() {
    ASSERT_CUDA(cuInit(0));
    ASSERT_CUDA(cuDevicePrimaryCtxRetain(&context_, 0));
    ASSERT_CUDA(cuCtxSetCurrent(context_));
  }

  static CUdeviceptr Allocate(CUdevice device, std::size_t size = kSize) {
    CUcontext context = nullptr;
    CUdeviceptr address = 0;
    EXPECT_CUDA(cuDevicePrimaryCtxRetain(&context, device));
    EXPECT_CUDA(cuCtxPushCurrent(context));
    EXPECT_CUDA(cuMemAlloc(&address, size));
    EXPECT_CUDA(cuCtxPopCurrent(&context));
    return address;
  }

  // What the model says of the copies that `work` makes.
  template <typename Work>
  ModelledWork Copies(const Work& work) const {
    auto account = ModelAccount::Open(node_path_);
    EXPECT_TRUE(account.ok());
    account->Reset();
    work();
    return account->Read().copies;
  }

  std::string topology_path_;
  std::string node_path_;
};

TEST_F(NodeTest, CopiesTakeTheTimeOfTheirLinks) {
  Start();
  const std::vector<char> host(kSize, 7);
  const CUdeviceptr first = Allocate(0);
  const CUdeviceptr second = Allocate(1);
  const CUdeviceptr third = Allocate(2);
  const auto takes = [&](CUdeviceptr to, CUdeviceptr from) {
    const ModelledWork copies = Copies([&] {
      EXPECT_CUDA(cuMemcpy(to, from, kSize));
      EXPECT_CUDA(cuCtxSynchronize());
    });
    EXPECT_EQ(copies.count, 1U);
    return std::chrono::round<microseconds>(copies.modelled);
  };
  const ModelledWork upload = Copies([&] { EXPECT_CUDA(cuMemcpyHtoD(first, host.data(), kSize)); });
  EXPECT_EQ(std::chrono::round<microseconds>(upload.modelled), microseconds(4000));
  EXPECT_EQ(takes(second, first), microseconds(4000));  // PCIe, at 1 GB/s
  EXPECT_EQ(takes(third, second), microseconds(4100));  // the slower of both links, a little late
  EXPECT_EQ(takes(third, first), microseconds(600));    // NVLink, at 8 GB/s
  EXPECT_EQ(Copies([&] { EXPECT_CUDA(cuMemsetD8(first, 1, kSize)); }).count, 0U);
}

TEST_F(NodeTest, PageableMemoryIsSlowerThanPinned) {
  Start();
  const CUdeviceptr third = Allocate(2);
  void* pinned = nullptr;
  ASSERT_CUDA(cuMemHostAlloc(&pinned, kSize, 0));
  std::memset(pinned, 7, kSize);
  std::vector<char> pageable(kSize, 7);
  const auto takes = [&](void* host) {
    const ModelledWork copies = Copies([&] {
      EXPECT_CUDA(cuMemcpyHtoD(third, host, kSize));
      EXPECT_CUDA(cuMemcpyDtoH(host, third, kSize));
    });
    EXPECT_EQ(copies.count, 2U);
    return std::chrono::round<microseconds>(copies.modelled);
  };
  EXPECT_EQ(takes(pinned), microseconds(2 * 2100));
  EXPECT_EQ(takes(pageable.data()), microseconds(2 * 8100));
  EXPECT_CUDA(cuMemHostRegister(pageable.data(), kSize, 0));
  EXPECT_EQ(takes(pageable.data()), microseconds(2 * 2100));
  EXPECT_CUDA(cuMemHostUnregister(pageable.data()));
}

TEST_F(NodeTest, PeersAreToldApart) {
  Start();
  const auto attribute = [](CUdevice_P2PAttribute which, CUdevice from, CUdevice to) {
    int value = -1;
    EXPECT_CUDA(cuDeviceGetP2PAttribute(&value, which, from, to));
    return value;
  };
  for (const CUdevice peer : {1, 2}) {
    int can = 0;
    EXPECT_CUDA(cuDeviceCanAccessPeer(&can, 0, peer));
    EXPECT_EQ(can, 1);
    EXPECT_EQ(attribute(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, peer), 1);
  }
  EXPECT_EQ(attribute(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 2), 0);
  EXPECT_EQ(attribute(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 1), 1);
  EXPECT_EQ(attribute(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 0, 2), 1);
  EXPECT_EQ(attribute(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 0, 1), 0);
  int value = 0;
  EXPECT_EQ(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0),
            CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(NodeTest, BusNumbersShowTheSwitch) {
  Start();
  char id[32];
  std::vector<std::string> ids;
  for (const CUdevice device : {0, 1, 2}) {
    int bus = 0;
    EXPECT_CUDA(cuDeviceGetPCIBusId(id, sizeof(id), device));
    EXPECT_CUDA(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device));
    EXPECT_EQ(bus, std::stoi(std::string(id).substr(5, 2), nullptr, 16));
    ids.emplace_back(id);
  }
  EXPECT_EQ(ids, (std::vector<std::string>{"0000:10:00.0", "0000:11:00.0", "0000:20:00.0"}));
}

TEST_F(NodeTest, ProcessesShareAGpusMemory) {
  constexpr std::size_t kMax = std::size_t{140} << 20;  // twice is too much
  const Pipe taken;
  Process other([&] {
    Start();
    Allocate(0, kMax);
    taken.Send();
    pause();
  });
  taken.Await();
  Start();
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_CUDA(cuMemGetInfo(&free, &total));
  EXPECT_GE(total - free, kMax);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, kMax), CUDA_ERROR_OUT_OF_MEMORY);
  other.Kill();
  EXPECT_CUDA(cuMemAlloc(&address, kMax));
}

TEST_F(NodeTest, AForkedChildKeepsNothingOfItsKilledParent) {
  constexpr std::size_t kMax = std::size_t{140} << 20;  // twice is too much
  const Pipe forked;
  const Pipe end;
  Process other([&] {
    Start();
    Allocate(0, kMax);
    if (fork() == 0) {
      forked.Send();
      end.Await();
      std::_Exit(0);
    }
    pause();
  });
  forked.Await();
  Start();
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, kMax), CUDA_ERROR_OUT_OF_MEMORY);
  other.Kill();
  EXPECT_CUDA(cuMemAlloc(&address, kMax));
  end.Send();
}

TEST_F(NodeTest, AnotherTopologyIsRefused) {
  {
    const Process first([&] { Start(); });
  }
  std::ofstream(topology_path_) << "version: v1\ngpus: [{memory: 1GiB}]\n";
  EXPECT_EQ(cuInit(0), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace torpor::emulator
