#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "proto/cuda_api/cudart_commands.h"
#include "server/settings/executor_settings.h"
#include "tests/server/executor/fake_daemon.h"
#include "tests/server/executor/test_client.h"
#include "tests/server/executor/test_session.h"

// The program itself, on the emulated GPU, between a torpord and a client of the test's own.
namespace torpor::executor {

inline std::vector<std::uint8_t> ReadFile(const std::string& path) {
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

template <typename... T>
std::vector<std::uint8_t> Pack(std::size_t bytes, std::pair<std::size_t, T>... values) {
  std::vector<std::uint8_t> packed(bytes);
  (std::memcpy(packed.data() + values.first, &values.second, sizeof(T)), ...);
  return packed;
}

inline wire::LaunchKernel Launch(std::uint64_t kernel, const std::vector<std::uint8_t>& parameters,
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

}  // namespace torpor::executor
