// Swap-ins of one image to the second of two emulated H200, from the host and from the first GPU,
// by the image's size. Image memory, chunks and the talk between executors are the real ones, in
// one process; milliseconds are the model's.
//   Host       from pinned host memory
//   PeerFirst  from the other GPU, whose chunks this GPU meets for the first time
//   PeerAgain  from the other GPU, whose chunks are mapped already
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "bench/run_benchmarks.h"
#include "server/executor/gpu/address_reservation.h"
#include "server/executor/image/mapped_backing.h"
#include "server/executor/session_memory/peer_image_copy.h"
#include "server/executor/session_memory/peer_server.h"
#include "server/executor/session_memory/session_memory.h"
#include "tests/device_base.h"
#include "tests/server/executor/image/fake_image.h"
#include "tests/server/executor/image/in_order.h"

namespace torpor::executor {
namespace {

constexpr Bytes kRange = kGiB;
constexpr Bytes kChunk = 32 * kMiB;
constexpr double kTimeScale = 80;  // of the topology

template <typename Value>
Value Must(absl::StatusOr<Value> value) {
  if (!value.ok()) std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  TORPOR_CHECK(value.ok());
  return *std::move(value);
}

// A GPU with room for the image.
struct Gpu {
  Gpu(const CudaDriver& driver, int index)
      : device(Must(Device::Open(driver, index))),
        pool(Must(PhysicalPool::Create(*device, kRange, kChunk))),
        base(kTestDeviceBase + static_cast<std::uint64_t>(index) * kRange),
        addresses(Must(AddressReservation::Make(*device, base, kRange))),
        memory(*device, *pool, {base, kRange}) {}

  const std::unique_ptr<Device> device;
  const std::unique_ptr<PhysicalPool> pool;
  const std::uint64_t base;
  const std::unique_ptr<AddressReservation> addresses;
  MappedMemory memory;
};

class TwoGpus {
 public:
  TwoGpus() : driver_(Must(LoadCudaDriver(TORPOR_BENCH_EMULATOR_DIR))), to_(driver_, 1) {
    SessionIdentity& session = identity_;
    session.id = session.first = {1};
    session.device_base = from_.base;
    session.device_bytes = kRange;
    TORPOR_CHECK(from_.device->MakeCurrent().ok());
    MappedSessionFiles files;
    files.window = NewFile(kMiB);
    files.image = NewImageFiles(kRange);
    owner_ = Must(SessionMemory::Open(*from_.device, from_.memory, hasher_, session,
                                      std::move(files), directory_));
    server_ = Must(PeerServer::Start(socket_, *from_.device, *from_.pool, directory_));
    image_ = std::make_unique<DeviceImage>(
        *to_.device, Must(MappedBacking::Open(*to_.device, *to_.pool, to_.base, kRange)), hasher_,
        to_.base, kRange, NewImageFiles(kRange));
  }
  ~TwoGpus() {
    TORPOR_CHECK(to_.device->MakeCurrent().ok());
    image_.reset();
    pools_.reset();
    TORPOR_CHECK(from_.device->MakeCurrent().ok());
    TORPOR_CHECK(owner_->image().Drop().ok());
    server_.reset();
    owner_.reset();
  }

  void PutOnOwner(Bytes bytes) {
    TORPOR_CHECK(from_.device->MakeCurrent().ok());
    TORPOR_CHECK(owner_->image().SwapIn(InOrder({{0, bytes}})).ok());
    TORPOR_CHECK(owner_->image().arrival().Wait().ok());
    owner_->image().BecomeSource();
  }
  void ForgetChunks() { pools_ = Must(PeerPools::Start(*to_.device)); }
  // Returns the time of a swap-in until the last byte is there.
  Duration SwapIn(Bytes bytes, bool from_peer) {
    TORPOR_CHECK(to_.device->MakeCurrent().ok());
    TORPOR_CHECK(image_->Drop().ok());
    std::unique_ptr<PeerCopy> source;
    if (from_peer) source = std::make_unique<PeerImageCopy>(*pools_, socket_, identity_);
    const SteadyClock clock;
    const TimePoint start = clock.Now();
    const ArrivedBytes copied = Must(image_->SwapIn(InOrder({{0, bytes}}), {}, std::move(source)));
    TORPOR_CHECK(image_->arrival().Wait().ok());
    TORPOR_CHECK((from_peer ? copied.from_peer : copied.from_host).total() == bytes);
    const Duration taken = clock.Now() - start;
    TORPOR_CHECK(image_->ReleaseSource().ok());
    return taken;
  }

 private:
  const CudaDriver driver_;
  Gpu from_{driver_, 0};
  Gpu to_;
  HostBlockHasher hasher_;
  MemoryDirectory directory_;
  SessionIdentity identity_;
  const std::string socket_ = std::filesystem::temp_directory_path().string() + "/peer_benchmark." +
                              std::to_string(getpid());
  std::unique_ptr<SessionMemory> owner_;
  std::unique_ptr<PeerServer> server_;
  std::unique_ptr<DeviceImage> image_;
  std::unique_ptr<PeerPools> pools_;
};

enum class Way { kHost, kPeerFirst, kPeerAgain };

void SwapIn(benchmark::State& state, Way way) {
  setenv("TORPOR_EMULATOR_TOPOLOGY", TORPOR_BENCH_TOPOLOGY, 1);
  static TwoGpus* const gpus = new TwoGpus;  // the driver ends with the process
  const Bytes bytes = static_cast<Bytes>(state.range(0)) * kMiB;
  gpus->PutOnOwner(bytes);
  gpus->ForgetChunks();
  if (way != Way::kPeerFirst) gpus->SwapIn(bytes, way == Way::kPeerAgain);
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    if (way == Way::kPeerFirst) gpus->ForgetChunks();
    const Duration taken = gpus->SwapIn(bytes, way != Way::kHost);
    state.SetIterationTime(ToSeconds(taken) / kTimeScale);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

void Configure(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("MiB")->Arg(16)->Arg(32)->Arg(64)->Arg(256);
  benchmark->UseManualTime()->Iterations(7)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(SwapIn, Host, Way::kHost)->Apply(Configure);
BENCHMARK_CAPTURE(SwapIn, PeerFirst, Way::kPeerFirst)->Apply(Configure);
BENCHMARK_CAPTURE(SwapIn, PeerAgain, Way::kPeerAgain)->Apply(Configure);

}  // namespace
}  // namespace torpor::executor

int main(int argc, char** argv) { return torpor::bench::RunBenchmarks(argc, argv); }
