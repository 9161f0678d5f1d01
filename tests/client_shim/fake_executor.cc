#include "tests/client_shim/fake_executor.h"

#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "proto/cuda_api/cudart_commands.h"

namespace torpor::testing {
namespace {

constexpr std::chrono::seconds kExecutorPatience{20};

template <typename Message>
Message Decoded(const ReceivedCommand& command) {
  Message message;
  wire::Reader reader(command.fields);
  reader(message);
  EXPECT_TRUE(reader.done()) << "call " << command.call_id;
  return message;
}

}  // namespace

FakeExecutor::FakeExecutor(std::string socket, std::set<std::uint32_t> synchronous_calls)
    : socket_(std::move(socket)), synchronous_calls_(std::move(synchronous_calls)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  builder.SetMaxReceiveMessageSize(2 * static_cast<int>(wire::kMaxFrameBytes));
  // No probing: the window stays small, so that flow control has something to do.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  server_ = builder.BuildAndStart();
}

FakeExecutor::~FakeExecutor() { Die(); }

void FakeExecutor::set_answer(Answer answer) {
  std::lock_guard lock(mutex_);
  answer_ = std::move(answer);
}

void FakeExecutor::set_page(wire::CompletionPage* page) {
  std::lock_guard lock(mutex_);
  page_ = page;
}

void FakeExecutor::Pause() {
  std::lock_guard lock(mutex_);
  paused_ = true;
}

void FakeExecutor::Resume() {
  {
    std::lock_guard lock(mutex_);
    paused_ = false;
  }
  changed_.notify_all();
}

void FakeExecutor::SendRaw(std::string payload) {
  std::lock_guard lock(mutex_);
  v1::Frame frame;
  frame.set_payload(std::move(payload));
  for (Stream* stream : streams_) stream->Write(frame);
}

void FakeExecutor::Die() {
  {
    std::lock_guard lock(mutex_);
    for (grpc::ServerContext* context : contexts_) context->TryCancel();
  }
  Resume();  // what is answered from here on reaches nobody
  if (server_) server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

std::vector<ReceivedCommand> FakeExecutor::Await(std::uint32_t call_id, std::size_t count) {
  std::unique_lock lock(mutex_);
  const auto came = [&] {
    std::size_t found = 0;
    for (const ReceivedCommand& command : commands_) found += command.call_id == call_id ? 1 : 0;
    return found >= count;
  };
  EXPECT_TRUE(changed_.wait_for(lock, kExecutorPatience, came))
      << "call " << call_id << " did not come";
  return commands_;
}

std::vector<ReceivedCommand> FakeExecutor::commands() const {
  std::lock_guard lock(mutex_);
  return commands_;
}

std::size_t FakeExecutor::frames() const {
  std::lock_guard lock(mutex_);
  return frames_;
}

grpc::Status FakeExecutor::Run(grpc::ServerContext* context, Stream* stream) {
  {
    std::lock_guard lock(mutex_);
    streams_.insert(stream);
    contexts_.insert(context);
  }
  v1::Frame frame;
  while (stream->Read(&frame) && OnFrame(frame.payload(), stream)) {
  }
  std::lock_guard lock(mutex_);
  streams_.erase(stream);
  contexts_.erase(context);
  return grpc::Status::OK;
}

bool FakeExecutor::OnFrame(const std::string& payload, Stream* stream) {
  wire::BatchHeader batch;
  if (payload.size() < sizeof batch) return false;
  std::memcpy(&batch, payload.data(), sizeof batch);
  std::size_t at = sizeof batch;
  {
    std::lock_guard lock(mutex_);
    ++frames_;
  }
  for (std::uint32_t i = 0; i < batch.command_count; ++i) {
    wire::CommandHeader header;
    if (payload.size() - at < sizeof header) return false;
    std::memcpy(&header, payload.data() + at, sizeof header);
    if (header.size_bytes < sizeof header || header.size_bytes > payload.size() - at) return false;
    ReceivedCommand command{batch.lease_id, header.call_id, {}, 0};
    if (batch.first_command != 0 && header.call_id >= wire::kFirstTableCall)
      command.number = batch.first_command++;
    command.fields.assign(payload.begin() + static_cast<std::ptrdiff_t>(at + sizeof header),
                          payload.begin() + static_cast<std::ptrdiff_t>(at + header.size_bytes));
    at += header.size_bytes;
    {
      std::unique_lock lock(mutex_);
      commands_.push_back(command);
      changed_.notify_all();
      const bool is_held =
          command.call_id != static_cast<std::uint32_t>(wire::ProtocolCall::kAttach);
      changed_.wait(lock, [&] { return !paused_ || !is_held; });
      Complete(command);
    }
    if (!synchronous_calls_.contains(command.call_id)) continue;
    v1::Frame frame;
    std::vector<std::uint8_t> bytes;
    wire::Writer{bytes}(AnswerTo(command));
    frame.set_payload(bytes.data(), bytes.size());
    std::lock_guard lock(mutex_);
    stream->Write(frame);
  }
  return at == payload.size();
}

wire::Reply FakeExecutor::AnswerTo(const ReceivedCommand& command) {
  Answer answer;
  {
    std::lock_guard lock(mutex_);
    answer = answer_;
  }
  wire::Reply reply;
  if (answer) reply = answer(command);
  reply.call_id = command.call_id;
  if (command.call_id == static_cast<std::uint32_t>(wire::ProtocolCall::kDrain) &&
      reply.result.empty())
    wire::Writer{reply.result}(wire::DrainReply{});
  return reply;
}

void FakeExecutor::Complete(const ReceivedCommand& command) {
  if (!page_) return;
  if (command.call_id == wire::StreamMark::kCallId) {
    const auto mark = Decoded<wire::StreamMark>(command);
    page_->slots[mark.slot].store(mark.value);
  }
  if (command.call_id == wire::MemcpyHtoD::kCallId) {
    const auto copy = Decoded<wire::MemcpyHtoD>(command);
    if (copy.slot != 0) page_->slots[copy.slot].store(copy.value);
  }
}

}  // namespace torpor::testing
