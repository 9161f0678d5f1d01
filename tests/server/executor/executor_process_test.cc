// The program itself, on the emulated GPU, between a torpord and a client of the test's own.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

#include "base/sha256.h"
#include "proto/cuda_api/cudart_commands.h"
#include "proto/wire/session_window.h"
#include "server/executor/gpu/shared_mapping.h"
#include "server/settings/executor_settings.h"
#include "tests/server/executor/fake_daemon.h"
#include "tests/server/executor/image/fake_image.h"
#include "tests/server/executor/test_client.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kDeviceBase = 0x2000'0000'0000;
constexpr std::uint64_t kHostBase = 0x3000'0000'0000;
constexpr Bytes kDeviceBytes = 1 * kGiB;
constexpr Bytes kHostBytes = 64 * kMiB;
constexpr Bytes kWindowBytes = 4 * kMiB;
constexpr Bytes kRing = wire::kCompletionPageBytes;
constexpr std::uint64_t kIllegalAddress = 700;

std::vector<std::uint8_t> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T>
T ResultOf(const wire::Reply& reply) {
  T result;
  wire::Reader reader(reply.result);
  reader(result);
  EXPECT_TRUE(reader.done());
  return result;
}

// A session's memory files, as torpord would make them.
struct TestSession {
  explicit TestSession(std::uint64_t session_id) : id(session_id) {
    key.fill(static_cast<std::uint8_t>(session_id));
    const auto make = [](Bytes bytes) {
      UniqueFd file(memfd_create("session", MFD_CLOEXEC));
      EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
      return file;
    };
    window_file = make(kWindowBytes);
    arena_file = make(kHostBytes);
    image_file = make(2 * kDeviceBytes);
    block_states_file = make(StateBytes(kDeviceBytes));
    window = *SharedMapping::Map(window_file, kWindowBytes);
    arena = *SharedMapping::Map(arena_file, kHostBytes);
    image = *SharedMapping::Map(image_file, kDeviceBytes);
    block_states = *SharedMapping::Map(block_states_file, StateBytes(kDeviceBytes));
    // Tests write to the image.
    StatesIn(block_states, kDeviceBytes).NoteUpload({0, kDeviceBytes});
  }

  void OfferTo(FakeDaemon& daemon) const {
    daemon.Offer(id, wire::SharedMemory::kWindow, window_file.get(), kWindowBytes);
    daemon.Offer(id, wire::SharedMemory::kHostArena, arena_file.get(), kHostBytes);
    daemon.Offer(id, wire::SharedMemory::kImage, image_file.get(), 2 * kDeviceBytes);
    daemon.Offer(id, wire::SharedMemory::kBlockStates, block_states_file.get(),
                 StateBytes(kDeviceBytes));
  }
  wire::CompletionPage& page() const {
    return *reinterpret_cast<wire::CompletionPage*>(window.data());
  }
  // Every session of a node has addresses of its own.
  std::uint64_t device_base() const { return kDeviceBase + id * kDeviceBytes; }
  std::uint64_t host_base() const { return kHostBase + id * kHostBytes; }

  std::uint64_t id;
  std::array<std::uint8_t, 16> key{};
  UniqueFd window_file, arena_file, image_file, block_states_file;
  SharedMapping window, arena, image, block_states;
};

template <typename... T>
std::vector<std::uint8_t> Pack(std::size_t bytes, std::pair<std::size_t, T>... values) {
  std::vector<std::uint8_t> packed(bytes);
  (std::memcpy(packed.data() + values.first, &values.second, sizeof(T)), ...);
  return packed;
}

wire::LaunchKernel Launch(std::uint64_t kernel, const std::vector<std::uint8_t>& parameters,
                          std::uint32_t blocks = 1, std::uint32_t threads = 1) {
  wire::LaunchKernel launch;
  launch.kernel = kernel;
  launch.grid = {blocks, 1, 1};
  launch.block = {threads, 1, 1};
  launch.parameters = parameters;
  return launch;
}

// How the executor of a test is started.
struct ProcessOptions {
  server::AddressMode address_mode = server::AddressMode::kMap;
  Bytes pool_bytes = 256 * kMiB;
  std::string topology = {};  // of the emulated node; empty: one GPU
};

class ExecutorProcess : public testing::Test {
 protected:
  explicit ExecutorProcess(ProcessOptions options = {}) : options_(std::move(options)) {}
  void SetUp() override {
    std::string pattern = testing::TempDir() + "executor.XXXXXX";
    folder_ = mkdtemp(pattern.data());
    daemon_ = std::make_unique<FakeDaemon>(folder_);
    Spawn();
    registration_ = daemon_->WaitForExecutor();
    ASSERT_TRUE(registration_.has_value());
  }
  void TearDown() override {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      WaitForExit();
    }
    daemon_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Spawn() {
    server::ExecutorSettings settings;
    settings.gpu = 0;
    settings.epoch = 7;
    settings.daemon_socket = daemon_->node_socket();
    settings.socket = socket();
    settings.descriptor_socket = daemon_->descriptor_socket();
    settings.module_dir = folder_;
    settings.cuda_library_dir = EMULATOR_DIR;
    settings.device.pool_bytes = options_.pool_bytes;
    settings.device.chunk_bytes = 2 * kMiB;
    settings.addresses = {kDeviceBase, 1024 * kGiB, kHostBase, 1024 * kGiB};
    settings.device.address_mode = options_.address_mode;
    settings.device.swap_group_bytes = 2 * kMiB;
    const std::vector<std::string> arguments = {EXECUTOR_PROGRAM, "--settings",
                                                server::FormatExecutorSettings(settings)};
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (const std::string& argument : arguments) {
      pointers.push_back(const_cast<char*>(argument.c_str()));
    }
    pointers.push_back(nullptr);
    const std::string cache = folder_ + "/cache";
    const std::string topology = folder_ + "/topology.yaml";
    std::ofstream(topology) << options_.topology;
    pid_ = fork();
    if (pid_ == 0) {
      setenv("TORPOR_EMULATOR_CACHE_DIR", cache.c_str(), 1);
      if (!options_.topology.empty()) setenv("TORPOR_EMULATOR_TOPOLOGY", topology.c_str(), 1);
      execv(EXECUTOR_PROGRAM, pointers.data());
      _exit(127);
    }
  }
  int WaitForExit() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string socket() const { return folder_ + "/executor.sock"; }

  int Open(const TestSession& session, const std::string& function = "") {
    session.OfferTo(*daemon_);
    v1::DaemonMessage message;
    v1::SessionDescription& description = *message.mutable_open_session()->mutable_session();
    description.set_session_id(session.id);
    description.set_function(function);
    description.set_session_key(session.key.data(), session.key.size());
    description.set_peer_key(std::string(16, 'p'));
    description.set_device_base(session.device_base());
    description.set_device_bytes(kDeviceBytes);
    description.set_host_base(session.host_base());
    description.set_host_bytes(kHostBytes);
    description.set_window_bytes(kWindowBytes);
    return daemon_->Do(message).code();
  }
  v1::ExecutorMessage::OperationDone SwapIn(const TestSession& session, Bytes bytes) {
    v1::DaemonMessage message;
    message.mutable_swap_in()->set_session_id(session.id);
    if (bytes > 0) message.mutable_swap_in()->add_live()->set_bytes(bytes);
    return daemon_->Do(message);
  }
  v1::ExecutorMessage::OperationDone SwapOut(const TestSession& session) {
    v1::DaemonMessage message;
    message.mutable_swap_out()->set_session_id(session.id);
    message.mutable_swap_out()->set_drop(true);
    return daemon_->Do(message);
  }
  int BeginLease(const TestSession& session, std::uint64_t lease) {
    v1::DaemonMessage message;
    message.mutable_begin_lease()->set_session_id(session.id);
    message.mutable_begin_lease()->set_lease_id(lease);
    return daemon_->Do(message).code();
  }
  int EndLease(const TestSession& session, std::uint64_t lease) {
    v1::DaemonMessage message;
    message.mutable_end_lease()->set_session_id(session.id);
    message.mutable_end_lease()->set_lease_id(lease);
    return daemon_->Do(message).code();
  }
  int Close(const TestSession& session) {
    v1::DaemonMessage message;
    message.mutable_close_session()->set_session_id(session.id);
    return daemon_->Do(message).code();
  }

  // Uploads the fatbin and loads it as module `id`.
  wire::ModuleLoadResult LoadModule(TestClient& client, std::uint64_t lease,
                                    const std::string& path, std::uint64_t id,
                                    std::vector<std::string> variables) {
    const std::vector<std::uint8_t> fatbin = ReadFile(path);
    EXPECT_FALSE(fatbin.empty()) << path;
    wire::ModuleLoad load;
    load.module = id;
    load.hash = Sha256(fatbin.data(), fatbin.size());
    load.variables = std::move(variables);
    auto reply = client.Call(BatchBuilder().Add(load), lease);
    EXPECT_TRUE(reply.has_value());
    if (ResultOf<wire::ModuleLoadResult>(*reply).found != 0) {
      return ResultOf<wire::ModuleLoadResult>(*reply);
    }
    wire::ModuleUpload upload;
    upload.hash = load.hash;
    upload.total_bytes = upload.bytes = fatbin.size();
    upload.data = fatbin;
    reply = client.Call(BatchBuilder().Add(upload), lease);
    EXPECT_EQ(reply->status, 0) << reply->message;
    reply = client.Call(BatchBuilder().Add(load), lease);
    EXPECT_EQ(reply->status, 0) << reply->message;
    return ResultOf<wire::ModuleLoadResult>(*reply);
  }

  // Opens the session under lease 1; the launch of a kernel that writes outside its memory.
  BatchBuilder WildLaunch(const TestSession& session, TestClient& client) {
    EXPECT_EQ(Open(session), 0);
    EXPECT_EQ(SwapIn(session, 4096).code(), 0);
    EXPECT_EQ(BeginLease(session, 1), 0);
    EXPECT_TRUE(client.Attach(session.id, session.key).has_value());
    LoadModule(client, 1, KERNELS_FATBIN, 1, {});
    wire::KernelCreate create;
    create.kernel = 2;
    create.module = 1;
    create.name = "poke";
    const auto parameters = Pack(8, std::pair{0ul, session.device_base() + 512 * kMiB});
    return BatchBuilder().Add(create).Add(Launch(2, parameters));
  }

  const ProcessOptions options_;
  std::string folder_;
  std::unique_ptr<FakeDaemon> daemon_;
  std::optional<v1::ExecutorMessage::Register> registration_;
  pid_t pid_ = -1;
};

TEST_F(ExecutorProcess, RegistersAndEndsWhenAsked) {
  EXPECT_EQ(registration_->epoch(), 7u);
  EXPECT_EQ(registration_->gpu(), 0);
  EXPECT_EQ(registration_->pid(), pid_);
  EXPECT_EQ(registration_->pool_bytes(), 256 * kMiB);
  EXPECT_EQ(registration_->socket_path(), socket());
  EXPECT_EQ(registration_->device().uuid().size(), 16u);
  v1::DaemonMessage shutdown;
  shutdown.mutable_shutdown();
  EXPECT_EQ(daemon_->Do(shutdown).code(), 0);
  EXPECT_EQ(WaitForExit(), 0);
}

TEST_F(ExecutorProcess, EndsWhenTorpordGoes) {
  daemon_->Hang();
  EXPECT_EQ(WaitForExit(), 4);
}

TEST_F(ExecutorProcess, AnImageThatTheGpuChangedComesBack) {
  const TestSession session(1);
  ASSERT_EQ(Open(session), 0);
  auto* image = reinterpret_cast<float*>(session.image.data());
  constexpr int kCount = 1000;
  for (int i = 0; i < kCount; ++i) image[i] = static_cast<float>(i);
  const auto in = SwapIn(session, 8192);
  ASSERT_EQ(in.code(), 0) << in.message();
  EXPECT_EQ(in.memory().session_used_bytes(), 8192u);
  ASSERT_EQ(BeginLease(session, 5), 0);

  TestClient client(socket());
  ASSERT_TRUE(client.Attach(session.id, session.key).has_value());
  const auto loaded = LoadModule(client, 5, KERNELS_FATBIN, 1, {});
  ASSERT_EQ(loaded.kernels.size(), 2u);
  wire::KernelCreate create;
  create.kernel = 2;
  create.module = 1;
  create.name = "scale";
  const auto parameters = Pack(16, std::pair{0ul, session.device_base()}, std::pair{8ul, 2.0F},
                               std::pair{12ul, kCount});
  wire::StreamMark mark;
  mark.slot = 3;
  mark.value = 99;
  BatchBuilder batch;
  batch.Add(create).Add(Launch(2, parameters, 4, 256)).Add(mark).Add(wire::DeviceSynchronize{});
  const auto reply = client.Call(batch, 5);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status, 0) << reply->message;
  EXPECT_EQ(reply->async_error, 0) << reply->message;
  EXPECT_EQ(session.page().slots[3].load(), 99u);

  BatchBuilder drain;
  drain.AddRaw(static_cast<std::uint32_t>(wire::ProtocolCall::kDrain), {});
  ASSERT_EQ(client.Call(drain, 5)->status, 0);
  ASSERT_EQ(EndLease(session, 5), 0);
  const auto out = SwapOut(session);
  ASSERT_EQ(out.code(), 0) << out.message();
  EXPECT_EQ(out.to_host().changed() + out.to_host().scratch() + out.to_host().uploaded(), 8192u);
  EXPECT_EQ(out.memory().session_held_bytes(), 0u);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(image[i], static_cast<float>(2 * i)) << i;
  EXPECT_EQ(Close(session), 0);
  EXPECT_EQ(Open(session), 0) << "addresses are free again";
}

TEST_F(ExecutorProcess, CopiesGoThroughWindowArenaAndReply) {
  const TestSession session(1);
  ASSERT_EQ(Open(session), 0);
  ASSERT_EQ(SwapIn(session, 0).code(), 0);
  ASSERT_EQ(BeginLease(session, 1), 0);
  v1::DaemonMessage grow;
  grow.mutable_grow()->set_session_id(session.id);
  grow.mutable_grow()->mutable_extent()->set_bytes(4 * kMiB);
  ASSERT_EQ(daemon_->Do(grow).code(), 0);
  v1::DaemonMessage map;
  map.mutable_map_host()->set_session_id(session.id);
  map.mutable_map_host()->mutable_extent()->set_bytes(8192);
  ASSERT_EQ(daemon_->Do(map).code(), 0);

  TestClient client(socket());
  ASSERT_TRUE(client.Attach(session.id, session.key).has_value());
  std::memset(session.window.data() + kRing, 0x11, 1 * kMiB);
  std::memset(session.arena.data(), 0x22, 4096);
  const std::vector<std::uint8_t> inline_bytes(64, 0x33);
  wire::MemcpyHtoD from_window;
  from_window.dst = session.device_base();
  from_window.bytes = 1 * kMiB;
  from_window.payload = wire::Payload::kWindow;
  from_window.offset = kRing;
  from_window.slot = 7;
  from_window.value = 1;
  wire::MemcpyHtoD from_arena;
  from_arena.dst = session.device_base() + kMiB;
  from_arena.bytes = 4096;
  from_arena.payload = wire::Payload::kArena;
  wire::MemcpyHtoD from_command;
  from_command.dst = session.device_base() + 2 * kMiB;
  from_command.bytes = inline_bytes.size();
  from_command.data = inline_bytes;
  wire::MemcpyDtoHArena to_arena;
  to_arena.src = session.device_base();
  to_arena.bytes = 4096;
  to_arena.arena_offset = 4096;
  wire::MemcpyDtoH to_reply;
  to_reply.src = session.device_base() + 2 * kMiB;
  to_reply.bytes = 64;
  to_reply.window_offset = wire::kReplyInline;
  BatchBuilder batch;
  // Pinned memory first: uploads behind other work are the write-back's.
  batch.Add(from_arena).Add(from_window).Add(from_command).Add(to_arena).Add(to_reply);
  auto reply = client.Call(batch, 1);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->async_error, 0) << reply->message;
  EXPECT_EQ(ResultOf<wire::MemcpyDtoHResult>(*reply).data, inline_bytes);
  EXPECT_EQ(session.arena.data()[4096], 0x11);
  EXPECT_EQ(session.page().slots[7].load(), 1u);

  wire::MemcpyDtoH to_window;
  to_window.src = session.device_base() + kMiB;
  to_window.bytes = 4096;
  to_window.window_offset = kRing + 2 * kMiB;
  ASSERT_EQ(client.Call(BatchBuilder().Add(to_window), 1)->status, 0);
  EXPECT_EQ(session.window.data()[kRing + 2 * kMiB], 0x22);

  // Uploads are in the image though nothing was written back: they survive this process.
  EXPECT_EQ(session.image.data()[0], 0x11);
  EXPECT_EQ(session.image.data()[kMiB], 0x22);
  EXPECT_EQ(session.image.data()[2 * kMiB], 0x33);
}

TEST_F(ExecutorProcess, VariablesMoveWithTheSession) {
  const TestSession session(1);
  ASSERT_EQ(Open(session), 0);
  ASSERT_EQ(SwapIn(session, 4096).code(), 0);
  ASSERT_EQ(BeginLease(session, 1), 0);
  const auto run = [&](std::uint64_t lease) {
    TestClient client(socket());
    EXPECT_TRUE(client.Attach(session.id, session.key).has_value());
    const auto loaded = LoadModule(client, lease, COUNTER_FATBIN, 1, {"counter", "absent"});
    EXPECT_EQ(loaded.globals_bytes, 32u) << "a header and one variable";
    wire::ModuleBindGlobals bind;
    bind.module = 1;
    bind.address = session.device_base();
    wire::KernelCreate create;
    create.kernel = 2;
    create.module = 1;
    create.name = "count_up";
    wire::MemcpyFromSymbol read;
    read.module = 1;
    read.variable = "counter";
    read.bytes = 4;
    read.window_offset = wire::kReplyInline;
    BatchBuilder batch;
    batch.Add(bind).Add(create).Add(Launch(2, {})).Add(read);
    const auto reply = client.Call(batch, lease);
    EXPECT_EQ(reply->async_error, 0) << reply->message;
    int value = 0;
    std::memcpy(&value, ResultOf<wire::MemcpyFromSymbolResult>(*reply).data.data(), sizeof value);
    EXPECT_TRUE(client.Finish().ok());
    return value;
  };
  EXPECT_EQ(run(1), 6);
  ASSERT_EQ(EndLease(session, 1), 0);
  ASSERT_EQ(SwapOut(session).code(), 0);
  // Another process, as on another GPU: only the image is left.
  kill(pid_, SIGKILL);
  WaitForExit();
  daemon_.reset();
  std::filesystem::remove_all(folder_);
  SetUp();
  ASSERT_EQ(Open(session), 0);
  ASSERT_EQ(SwapIn(session, 4096).code(), 0);
  ASSERT_EQ(BeginLease(session, 2), 0);
  EXPECT_EQ(run(2), 7);
}

TEST_F(ExecutorProcess, AWildKernelCostsTheContextAndSaysSo) {
  const TestSession session(1);
  TestClient client(socket());
  const auto reply = client.Call(WildLaunch(session, client).Add(wire::DeviceSynchronize{}), 1);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status, static_cast<int>(kIllegalAddress)) << reply->message;
  EXPECT_EQ(reply->async_error_is_sticky, 1u);
  const auto lost = daemon_->WaitForContextLost();
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->session_id(), session.id);
  EXPECT_EQ(session.page().sticky_error.load(), kIllegalAddress);
  EXPECT_EQ(WaitForExit(), 3);
}

TEST_F(ExecutorProcess, AWildKernelIsNoticedWithoutACall) {
  const TestSession session(1);
  TestClient client(socket());
  ASSERT_TRUE(client.Send(WildLaunch(session, client).Frame(1)));
  EXPECT_TRUE(daemon_->WaitForContextLost().has_value());
  EXPECT_EQ(WaitForExit(), 3);
}

TEST_F(ExecutorProcess, APingIsAnswered) {
  v1::DaemonMessage message;
  message.mutable_ping();
  EXPECT_EQ(daemon_->Do(message).code(), 0);
  kill(pid_, SIGKILL);
  WaitForExit();
  EXPECT_EQ(daemon_->Do(message).code(), -1);
}

TEST_F(ExecutorProcess, StrangersAndStaleLeasesAreRefused) {
  const TestSession session(1);
  const TestSession other(2);
  ASSERT_EQ(Open(session), 0);
  ASSERT_EQ(Open(other), 0);
  TestClient stranger(socket());
  EXPECT_FALSE(stranger.Attach(session.id, other.key).has_value());
  EXPECT_EQ(stranger.Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);

  ASSERT_EQ(SwapIn(session, 4096).code(), 0);
  ASSERT_EQ(BeginLease(session, 1), 0);
  TestClient stale(socket());
  ASSERT_TRUE(stale.Attach(session.id, session.key).has_value());
  EXPECT_FALSE(stale.Call(BatchBuilder().Add(wire::DeviceSynchronize{}), 9).has_value());
  EXPECT_EQ(stale.Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);

  TestClient good(socket());
  ASSERT_TRUE(good.Attach(session.id, session.key).has_value()) << "others are not disturbed";
  EXPECT_EQ(good.Call(BatchBuilder().Add(wire::DeviceSynchronize{}), 1)->status, 0);
  EXPECT_EQ(SwapOut(session).code(), 9) << "never under a lease";
}

class TranslatingExecutor : public ExecutorProcess {
 protected:
  TranslatingExecutor() : ExecutorProcess({.address_mode = server::AddressMode::kTranslate}) {}
};

TEST_F(TranslatingExecutor, ConsolidatesWhenItHasNothingToDo) {
  constexpr Bytes kBytes = 32 * kMiB;
  std::deque<TestSession> sessions;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    const TestSession& session = sessions.emplace_back(id);
    ASSERT_EQ(Open(session, "function-" + std::to_string(id)), 0);
    std::memset(session.image.data(), static_cast<int>(id), kBytes);
    ASSERT_EQ(SwapIn(session, kBytes).code(), 0);
  }
  const auto out = SwapOut(sessions[1]);
  ASSERT_EQ(out.code(), 0);
  EXPECT_EQ(out.memory().fragmented_bytes(), kBytes);
  EXPECT_TRUE(daemon_->WaitForFragmented(0));
  for (const TestSession& session : sessions) {
    ASSERT_EQ(SwapOut(session).code(), 0);
    EXPECT_EQ(Close(session), 0);
  }
}

// A driver whose launches wait while 1024 pieces of work are unfinished.
class FullQueue : public ExecutorProcess {
 protected:
  FullQueue()
      : ExecutorProcess({.topology = "version: v1\n"
                                     "gpus: [{memory: 1GiB}]\n"
                                     "strict: {launch_queues: true}\n"}) {}

  // Opens the session under lease 1, with kernel 2.
  void Prepare(const TestSession& session, TestClient& client, const std::string& function) {
    ASSERT_EQ(Open(session, function), 0);
    ASSERT_EQ(SwapIn(session, 4096).code(), 0);
    ASSERT_EQ(BeginLease(session, 1), 0);
    ASSERT_TRUE(client.Attach(session.id, session.key).has_value());
    LoadModule(client, 1, KERNELS_FATBIN, 1, {});
    wire::KernelCreate create;
    create.kernel = 2;
    create.module = 1;
    create.name = "poke";
    ASSERT_EQ(client.Call(BatchBuilder().Add(create).Add(wire::DeviceSynchronize{}), 1)->status, 0);
  }
  static wire::StreamMark Mark(std::uint32_t slot, std::uint64_t value) {
    wire::StreamMark mark;
    mark.slot = slot;
    mark.value = value;
    return mark;
  }
};

TEST_F(FullQueue, ALeaseEndsBehindWorkThatWaitsForTheHost) {
  constexpr std::uint32_t kBegun = 1;
  constexpr std::uint32_t kAwaited = 2;
  constexpr std::uint32_t kLaunched = 3;
  constexpr std::uint64_t kLaunches = 5000;
  const TestSession session(1);
  TestClient client(socket());
  ASSERT_NO_FATAL_FAILURE(Prepare(session, client, "waiting"));
  const auto parameters = Pack(8, std::pair{0ul, session.device_base()});
  BatchBuilder batch;
  batch.Add(Mark(kBegun, 1)).Add(wire::StreamWaitMark{0, session.id, kAwaited, 1});
  for (std::uint64_t i = 1; i <= kLaunches; ++i) {
    batch.Add(Launch(2, parameters)).Add(Mark(kLaunched, i));
  }
  ASSERT_TRUE(client.Send(batch.Frame(1)));
  while (session.page().slots[kBegun].load() == 0) std::this_thread::yield();

  // Another session's work goes on.
  const TestSession other(2);
  TestClient other_client(socket());
  ASSERT_NO_FATAL_FAILURE(Prepare(other, other_client, "other"));
  wire::MemcpyDtoH download;
  download.src = other.device_base();
  download.bytes = sizeof(std::uint32_t);
  download.window_offset = wire::kReplyInline;
  const auto poked = other_client.Call(
      BatchBuilder().Add(Launch(2, Pack(8, std::pair{0ul, other.device_base()}))).Add(download), 1);
  ASSERT_TRUE(poked.has_value());
  EXPECT_EQ(ResultOf<wire::MemcpyDtoHResult>(*poked).data, (std::vector<std::uint8_t>{1, 0, 0, 0}));

  // The lease ends, and with it the batch, though none of the work can.
  std::future<int> end = std::async(std::launch::async, [&] { return EndLease(session, 1); });
  auto ended = std::async(std::launch::async, [&] { return client.Receive().has_value(); });
  const bool has_ended = ended.wait_for(std::chrono::seconds(15)) == std::future_status::ready;
  EXPECT_TRUE(has_ended) << "a thread waits in a launch";
  EXPECT_EQ(session.page().slots[kLaunched].load(), 0U);
  session.page().slots[kAwaited].store(1);
  EXPECT_FALSE(ended.get());
  EXPECT_EQ(end.get(), 0);
  EXPECT_GT(session.page().slots[kLaunched].load(), 100U);
  EXPECT_LT(session.page().slots[kLaunched].load(), 1024U);
}

// Chunks whose unmapping takes an hour and more.
class FullGpu : public ExecutorProcess {
 protected:
  FullGpu()
      : ExecutorProcess({.address_mode = server::AddressMode::kTranslate,
                         .pool_bytes = 8 * kGiB,
                         .topology = "version: v1\n"
                                     "gpus: [{memory: 16GiB}]\n"
                                     "strict: {costs: true}\n"
                                     "costs: {vmm_us: {create: 0, map: 0, set_access: 0,"
                                     " unmap: 1000000}, module_ms: 0}\n"}) {}
};

TEST_F(FullGpu, EndsWithoutUnmappingItsChunks) {
  EXPECT_GT(registration_->pool_bytes(), 7 * kGiB);
  const TestSession session(1);
  ASSERT_EQ(Open(session), 0);
  ASSERT_EQ(SwapIn(session, 64 * kMiB).code(), 0);
  v1::DaemonMessage shutdown;
  shutdown.mutable_shutdown();
  EXPECT_EQ(daemon_->Do(shutdown).code(), 0);
  EXPECT_EQ(WaitForExit(), 0);
}

}  // namespace
}  // namespace torpor::executor
