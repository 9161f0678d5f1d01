// Memory of sessions in the executor's process: images, copies, variables.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/executor/executor_process_fixture.h"

namespace torpor::executor {
namespace {

constexpr Bytes kRing = wire::kCompletionPageBytes;

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

}  // namespace
}  // namespace torpor::executor
